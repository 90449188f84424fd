import CMallocCount
import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("several media of a kind")
struct SeveralMediaTests {
  private static let slots = 3

  /// Offered by a side that sends one sound and receives several, and several pictures; the other is its counterpart.
  private func room() throws -> MediaPair {
    func sections(_ direction: MediaDirection) -> [MediaSection] {
      var list = [MediaSection.audio()]
      for _ in 0..<Self.slots { list.append(.audio(direction)) }
      for _ in 0..<Self.slots { list.append(.video(direction, codecs: [.vp8])) }
      return list
    }
    return try MediaPair(sections(.receiveOnly), answering: sections(.sendOnly))
  }

  /// Sounds and pictures that one side sends in several media; how the other knows whose a packet is.
  private func publisher(
    _ audios: Int, _ videos: Int, isDescribed: Bool = true, hasMID: Bool = true
  ) throws -> MediaPair {
    func sections(_ direction: MediaDirection) -> [MediaSection] {
      var list: [MediaSection] = []
      for _ in 0..<audios { list.append(.audio(direction)) }
      for _ in 0..<videos { list.append(.video(direction, codecs: [.vp8])) }
      guard !hasMID else { return list }
      for index in list.indices { list[index].headerExtensions.removeAll { $0 == RTPHeaderExtension.mid } }
      return list
    }
    return try MediaPair(sections(.sendOnly), answering: sections(.receiveOnly)) { offer in
      guard !isDescribed else { return }
      for index in offer.media.indices {
        (offer.media[index].sources, offer.media[index].sourceGroups) = ([], [])
      }
    }
  }

  @Test("each side sees the media in the order of the m-lines, with its own direction")
  func negotiated() throws {
    let pair = try room()
    let (member, hub) = (try #require(pair.a.media?.shown), try #require(pair.b.media?.shown))
    #expect(member.map(\.mid) == ["0", "1", "2", "3", "4", "5", "6"] && hub.map(\.mid) == member.map(\.mid))
    #expect(member.map(\.kind) == [.audio, .audio, .audio, .audio, .video, .video, .video])
    #expect(member[0].direction == .sendReceive && hub[0].direction == .sendReceive)
    #expect(member.dropFirst().allSatisfy { $0.direction == .receiveOnly && $0.sendCodec == nil })
    #expect(hub.dropFirst().allSatisfy { $0.direction == .sendOnly && $0.sendCodec != nil })
    // The first that sends is the one that is meant where none is named.
    #expect(pair.a.media?.pictureCodec == nil && pair.b.media?.pictureCodec?.name == "VP8")
    #expect(pair.a.media?.soundCodec?.name == "opus")
  }

  @Test("one payload type stands for telephone events in all media of sound, and each has sources of its own")
  func described() {
    var settings = RTCSessionSettings()
    settings.sections = [MediaSection](repeating: .audio(), count: 17)
    let sections = settings.describedSections()
    let tones = sections.flatMap { $0.codecs.filter { $0.name == "telephone-event" } }
    #expect(tones.count == 17 && Set(tones.map(\.payloadType)).count == 1)
    #expect(Set(sections.compactMap { $0.source?.ssrc }).count == 17)
    let later = settings.described([.audio(), .video()], beside: sections)
    #expect(later[0].codecs.map(\.payloadType) == sections[0].codecs.map(\.payloadType))
    #expect(later.allSatisfy { $0.source?.cname == sections[0].source?.cname })
    #expect(Set((sections + later).compactMap { $0.source?.ssrc }).count == 19)
  }

  @Test("sound comes with the medium in which it was sent, and without one in the first that sends")
  func sound() throws {
    let pair = try room()
    pair.run(milliseconds: 400, step: 20) { number in
      for medium in 0...Self.slots { pair.b.sendSound([UInt8(medium), 7, 7], on: medium, at: pair.now) }
      pair.a.sendSound([9, 9, 9], at: pair.now)
    }
    pair.run(milliseconds: 100)
    #expect(pair.a.sounds.count == 20 * (Self.slots + 1))
    #expect(zip(pair.a.sounds, pair.a.payloads).allSatisfy { $0.medium == Int($1[0]) })
    #expect(pair.b.sounds.count == 20 && pair.b.sounds.allSatisfy { $0.medium == 0 })
    // Pictures and what is none of the media send no sound.
    for medium in [-1, Self.slots + 1, 99] { pair.b.sendSound([1], on: medium, at: pair.now) }
    pair.run(milliseconds: 100)
    #expect(pair.a.sounds.count == 20 * (Self.slots + 1))
  }

  @Test(
    "a source belongs to the medium that its description or its packets name", arguments: [true, false],
    [true, false])
  func routed(_ isDescribed: Bool, _ hasMID: Bool) throws {
    let pair = try publisher(3, 2, isDescribed: isDescribed, hasMID: hasMID)
    let frames = (0..<2).map { TestPicture.vp8(isKey: true, count: 500 + $0, number: $0) }
    pair.run(milliseconds: 200, step: 20) { number in
      for medium in 0..<3 { pair.a.sendSound([UInt8(medium), 1], on: medium, at: pair.now) }
      guard number == 0 else { return }
      for index in 0..<2 { pair.a.send(frames[index], isKey: true, on: 3 + index, at: pair.now) }
    }
    pair.run(milliseconds: 500)
    guard isDescribed || hasMID else {
      // Nothing says whose it is.
      #expect(pair.b.sounds.isEmpty && pair.b.pictures.isEmpty)
      #expect(try #require(pair.b.media?.statistics.sound).refused >= 32)
      return
    }
    #expect(pair.b.sounds.count == 30)
    #expect(zip(pair.b.sounds, pair.b.payloads).allSatisfy { $0.medium == Int($1[0]) })
    #expect(pair.b.pictures.count == 2)
    #expect(pair.b.pictures.allSatisfy { $0.bytes == frames[$0.picture.medium - 3] })
  }

  /// A source that was heard, and its next number.
  private func heard(_ pair: MediaPair, on medium: Int) throws -> (ssrc: UInt32, next: UInt16) {
    pair.run(milliseconds: 100, step: 20) { _ in pair.a.sendSound([1, 2], on: medium, at: pair.now) }
    pair.run(milliseconds: 100)
    let last = try #require(pair.b.sounds.last)
    #expect(last.medium == medium)
    return (last.ssrc, UInt16(truncatingIfNeeded: last.sequence + 1))
  }

  @Test(
    "a source is learnt by its mid, and is forgotten with its BYE; one that is described is not",
    arguments: [true, false])
  func forgotten(_ isDescribed: Bool) throws {
    let pair = try publisher(2, 0, isDescribed: isDescribed)
    let source = try heard(pair, on: 1)
    // Without a mid.
    let packet = TestPacket.rtp(111, sequence: source.next, ssrc: source.ssrc, payload: [3, 4])
    pair.b.take(packet, isRTCP: false, at: pair.now)
    #expect(pair.b.sounds.count == 6 && pair.b.sounds.last?.medium == 1)
    pair.b.take(TestPacket.goodbye(source.ssrc), isRTCP: true, at: pair.now)
    #expect(pair.b.ended == [source.ssrc] && pair.b.left.contains(source.ssrc))
    // Later than packets of an ended source may come.
    pair.run(milliseconds: 2_100)
    let refused = try #require(pair.b.media?.statistics.sound.refused)
    pair.b.take(packet, isRTCP: false, at: pair.now)
    #expect(pair.b.sounds.count == (isDescribed ? 7 : 6))
    #expect(pair.b.media?.statistics.sound.refused == refused + (isDescribed ? 0 : 1))
  }

  @Test("a source that leaves is over once, however many media there are; of many in a datagram 64 count")
  func leaving() throws {
    let pair = try publisher(3, 2)
    let source = try heard(pair, on: 1)
    pair.b.take(TestPacket.goodbyes([source.ssrc]), isRTCP: true, at: pair.now)
    #expect(pair.b.left == [source.ssrc] && pair.b.ended == [source.ssrc])
    pair.b.left = []
    let many = (0..<279).map { UInt32(50_000 + $0) }
    pair.b.take(TestPacket.goodbyes(many), isRTCP: true, at: pair.now)
    #expect(pair.b.left == Array(many.prefix(64)))
    // Each datagram may name as many.
    pair.b.take(TestPacket.goodbyes(Array(many.suffix(3))), isRTCP: true, at: pair.now)
    #expect(pair.b.left.count == 67)
  }

  @Test("a source of which nothing is known is refused where several media receive, and taken where one does")
  func unknown() throws {
    let pair = try publisher(2, 0)
    for ssrc in UInt32(1)..<5 {
      pair.b.take(TestPacket.rtp(111, sequence: 1, ssrc: ssrc, payload: [1]), isRTCP: false, at: pair.now)
    }
    #expect(pair.b.sounds.isEmpty && pair.b.media?.statistics.sound.refused == 4)
    let hub = try room()
    hub.b.take(TestPacket.rtp(111, sequence: 1, ssrc: 77, payload: [1]), isRTCP: false, at: hub.now)
    #expect(hub.b.sounds.map(\.medium) == [0])
  }

  @Test("however many sources a peer has, what is kept of them is bounded")
  func bounded() {
    var routes = MediaRoutes()
    for medium in 0..<2 {
      var media = AgreedMedia(.receiveOnly, sendCodec: nil, receiveCodecs: [.opus])
      media.sources = (0..<500).map { UInt32(1_000 * medium + $0) }
      routes.add(media, as: medium, at: 0)
    }
    #expect(routes.count == MediaRoutes.most / 2)
    for ssrc in UInt32(10_000)..<20_000 { routes.learn(ssrc, as: 1, at: 1) }
    #expect(routes.count == MediaRoutes.most)
    // The silent ones make room.
    let header = RTPHeader(payloadType: 111, sequence: 1, timestamp: 1, ssrc: 30_000)
    let empty: [UInt8] = []
    let before = routes.medium(of: header, in: empty.span, at: 2)
    routes.learn(30_000, as: 1, at: .milliseconds(30_000))
    let after = routes.medium(of: header, in: empty.span, at: .milliseconds(30_000))
    #expect(before == nil && after == 1 && routes.count == MediaRoutes.most)
  }

  @Test("a request for a key frame reaches the medium that it is for, and without one all")
  func keyFrames() throws {
    let pair = try publisher(1, 2)
    pair.run(milliseconds: 400, step: 40) { number in
      for medium in 1...2 {
        pair.a.send(
          TestPicture.vp8(isKey: number == 0, count: 800, number: number), isKey: number == 0, on: medium,
          at: pair.now)
      }
    }
    pair.run(milliseconds: 200)
    #expect(pair.a.mediaWanted.isEmpty)
    pair.b.media?.requestKeyFrame(medium: 2, at: pair.now)
    pair.run(milliseconds: 100)
    #expect(pair.a.mediaWanted == [2])
    pair.a.send(TestPicture.vp8(isKey: true, count: 800, number: 50), isKey: true, on: 2, at: pair.now)
    pair.run(milliseconds: 1_000)
    pair.b.media?.requestKeyFrame(at: pair.now)
    pair.run(milliseconds: 100)
    #expect(pair.a.mediaWanted.dropFirst().sorted() == [1, 2])
  }

  @Test("lost packets of each medium are repeated", arguments: [true, false])
  func repaired(_ hasMID: Bool) throws {
    let pair = try publisher(0, 2, hasMID: hasMID)
    var random = TestRandom(state: 5)
    pair.drops = { end, packet in
      end === pair.a && !packet.isRTCP && Int.random(in: 0..<100, using: &random) < 7
    }
    defer { pair.drops = { _, _ in false } }
    var made: [Set<[UInt8]>] = [[], []]
    pair.run(milliseconds: 20_000, step: 100) { number in
      for medium in 0..<2 {
        let picture = TestPicture.vp8(isKey: number % 20 == 0, count: 1_800 + medium, number: number)
        made[medium].insert(picture)
        pair.a.send(picture, isKey: number % 20 == 0, on: medium, at: pair.now)
      }
    }
    pair.run(milliseconds: 1_500)
    for medium in 0..<2 {
      let whole = pair.b.pictures.filter { $0.picture.medium == medium && !$0.picture.isDamaged }
      #expect(whole.count >= 190)
      #expect(whole.allSatisfy { made[medium].contains($0.bytes) })
    }
    #expect(try #require(pair.b.media?.statistics.video.recovered) > 10)
  }

  @Test("media that send share what the network carries, and those that are silent have no part of it")
  func shared() {
    var settings = CongestionControl.Settings(sender: 1)
    settings.video = 100_000...2_500_000
    settings.sound = 16_000...64_000
    (settings.sounds, settings.videos) = (4, 4)
    let control = CongestionControl(settings)
    let one = control.takeAllocation()
    let two = control.takeAllocation(sounds: 1, videos: 2)
    let same = control.takeAllocation(sounds: 1, videos: 2)
    #expect(one != nil && two != nil && same == nil)
    #expect(one?.video == two.map { $0.video * 2 + (one?.video ?? 0) % 2 })
    #expect(one?.sound == 64_000 && two?.sound == 64_000)
    control.waiting = 4
    let pace = control.pace
    control.waiting = 1
    #expect(control.pace / 4 == pace)
  }

  @Test("pictures continue beside sound that is sent on, where the network carries both")
  func forwardedBudget() throws {
    let pair = try room()
    var sound = ReceivedSound(
      ssrc: 5, codec: .opus, sequence: 1, timestamp: 1, arrival: pair.now, capture: 0, payloadType: 111,
      marker: false, restarts: false)
    let payload = [0x78] + [UInt8](repeating: 1, count: 59)
    pair.run(milliseconds: 6_000, step: 20) { _ in
      sound.sequence += 1
      sound.timestamp += 960
      sound.arrival = pair.now
      for medium in 1...Self.slots { pair.b.forward(sound, payload, on: medium, at: pair.now) }
    }
    #expect(pair.b.allocations.contains { $0.video == 0 })
    #expect(try #require(pair.b.allocations.last).video > 100_000)
  }

  @Test("a new source of pictures is asked for packets at the pace of the round trip that is known")
  func roundTrip() throws {
    let pair = try MediaPair(
      [.audio(), .video(.sendOnly, codecs: [.vp8])],
      answering: [.audio(), .video(.receiveOnly, codecs: [.vp8])])
    pair.delay = .milliseconds(200)
    pair.run(milliseconds: 15_000, step: 20) { _ in
      for end in [pair.a, pair.b] { end.sendSound([1, 2], at: pair.now) }
    }
    #expect(try #require(pair.b.media?.statistics.roundTrip) > .milliseconds(350))
    var requests = 0
    pair.drops = { end, packet in
      if end === pair.b, packet.isRTCP, Self.hasNack(packet.bytes) { requests += 1 }
      return false
    }
    defer { pair.drops = { _, _ in false } }
    let key: [UInt8] = [0x10, 0x10, 0x02, 0x00, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00]
    for (sequence, payload) in [(UInt16(1), key), (3, [0, 7, 7, 7])] {
      pair.b.take(
        TestPacket.rtp(96, sequence: sequence, timestamp: 9, ssrc: 77, payload: payload), isRTCP: false,
        at: pair.now)
    }
    pair.run(milliseconds: 300)
    // Not once more before an answer can be there.
    #expect(requests == 1)
  }

  /// True for a datagram with a request of packets.
  private static func hasNack(_ bytes: [UInt8]) -> Bool {
    var start = 0
    while start + 4 <= bytes.count {
      if bytes[start + 1] == 205, bytes[start] & 0x1F == 1 { return true }
      start += 4 + 4 * (Int(bytes[start + 2]) << 8 | Int(bytes[start + 3]))
    }
    return false
  }

  @Test("a medium that is silent sends no reports, and one that speaks does")
  func quiet() throws {
    let pair = try room()
    var reporters: Set<[UInt8]> = []
    pair.drops = { end, packet in
      if end === pair.b, packet.isRTCP { reporters.insert(Array(packet.bytes[4..<8])) }
      return false
    }
    defer { pair.drops = { _, _ in false } }
    pair.run(milliseconds: 20_000)
    // The first sound and the first pictures.
    #expect(reporters.count == 2)
    pair.run(milliseconds: 20_000, step: 20) { _ in
      for medium in 1...Self.slots { pair.b.sendSound([1], on: medium, at: pair.now) }
    }
    #expect(reporters.count == 2 + Self.slots)
    // The receiver knows when each source has captured its sound.
    for medium in 1...Self.slots {
      #expect(try #require(pair.a.sounds.last(where: { $0.medium == medium })).capture != 0)
    }
  }

  @Test("sound of several sources is sent on as one, with its gaps, its level and its marks")
  func forwarded() throws {
    let (source, target) = (try publisher(2, 0), try room())
    var packets = 0
    source.drops = { end, packet in
      guard end === source.a, !packet.isRTCP else { return false }
      packets += 1
      return packets == 6
    }
    defer { source.drops = { _, _ in false } }
    source.run(milliseconds: 200, step: 20) { number in
      source.a.sendSound([UInt8(number)], on: 0, at: source.now)
    }
    source.run(milliseconds: 200, step: 20) { number in
      source.a.sendSound([UInt8(100 + number)], on: 1, at: source.now)
    }
    source.run(milliseconds: 100)
    #expect(source.b.sounds.count == 19)
    for (sound, payload) in zip(source.b.sounds, source.b.payloads) {
      var sound = sound
      sound.level = RTPAudioLevel(attenuation: 30, hasSpeech: true)
      target.b.forward(sound, payload, on: 2, at: target.now)
      // It is sent on once.
      target.b.forward(sound, payload, on: 2, at: target.now)
      target.run(milliseconds: 20)
    }
    target.run(milliseconds: 100)
    let sounds = target.a.sounds
    #expect(target.a.payloads == source.b.payloads)
    #expect(sounds.allSatisfy { $0.medium == 2 && $0.level?.attenuation == 30 })
    #expect(Set(sounds.map(\.ssrc)).count == 1)
    #expect(sounds.indices.filter { sounds[$0].marker } == [0, 9])
    let steps: [Int64] = sounds.map { $0.sequence - sounds[0].sequence }
    // The one that was lost is missing here too.
    let expected: [Int64] = (0..<20).filter { $0 != 5 }
    #expect(steps == expected)
  }

  @Test("sound of another codec is not sent on, nor where nothing is sent")
  func unfit() throws {
    let pair = try room()
    var sound = ReceivedSound(
      ssrc: 5, codec: .pcmu, sequence: 1, timestamp: 1, arrival: pair.now, capture: 0, payloadType: 0,
      marker: false, restarts: false)
    pair.b.forward(sound, [1, 2], on: 1, at: pair.now)
    sound.codec = .opus
    sound.payloadType = 111
    for medium in [-1, 4, 99] { pair.b.forward(sound, [1, 2], on: medium, at: pair.now) }
    pair.a.forward(sound, [1, 2], on: 1, at: pair.now)
    pair.b.forward(sound, [UInt8](repeating: 1, count: 1_300), on: 1, at: pair.now)
    #expect(pair.a.sent.isEmpty && pair.b.sent.isEmpty)
    #expect(pair.b.media?.statistics.sound.refused == 2)
    pair.b.forward(sound, [1, 2], on: 1, at: pair.now)
    #expect(pair.b.sent.count == 1)
  }

  @Test("media that are added later work beside those that there are")
  func added() throws {
    let pair = try publisher(1, 0, isDescribed: false, hasMID: false)
    _ = try heard(pair, on: 0)
    let media = try #require(pair.b.media)
    var agreed = AgreedMedia(.sendReceive, sendCodec: .opus, receiveCodecs: [.opus])
    agreed.sources = [4_711]
    media.add(
      [MediaLine(mid: "9", kind: .audio, media: agreed, source: LocalSource(ssrc: 12, cname: "b"))],
      at: pair.now)
    // The source that was heard is known.
    _ = try heard(pair, on: 0)
    pair.b.take(TestPacket.rtp(111, sequence: 1, ssrc: 4_711, payload: [1]), isRTCP: false, at: pair.now)
    #expect(pair.b.sounds.last?.medium == 1)
    #expect(media.shown.map(\.mid) == ["0", "9"] && media.soundCodec?.name == "opus")
    pair.b.sent = []
    pair.b.sendSound([1], at: pair.now)
    #expect(pair.b.sent.count == 1)
  }

  @Test(
    "packets of several media, and those that are sent on, make no heap request",
    .enabled(if: millrace_malloc_counting_available() != 0, SessionHeapTests.reason))
  func heap() throws {
    let (pair, target) = (try publisher(3, 0, isDescribed: false), try room())
    var packets: [[UInt8]] = []
    pair.drops = { end, packet in
      if end === pair.a, !packet.isRTCP { packets.append(packet.bytes) }
      return end === pair.a
    }
    pair.run(milliseconds: 4_000, step: 20) { number in
      for medium in 0..<3 { pair.a.sendSound([UInt8(medium), 2, 3], on: medium, at: pair.now) }
    }
    pair.drops = { _, _ in false }
    let (receiver, sender) = (try #require(pair.b.media), try #require(target.b.media))
    pair.b.isIdle = true
    target.b.isIdle = true
    let taken = packets
    let payload: [UInt8] = [0x78, 1, 2]
    var sound = ReceivedSound(
      ssrc: 5, codec: .opus, sequence: 1, timestamp: 1, arrival: pair.now, capture: 0, payloadType: 111,
      marker: false, restarts: false)
    var now = pair.now
    var requests: UInt64 = 0
    for number in taken.indices {
      let packet = taken[number]
      sound.sequence += 1
      sound.timestamp += 960
      sound.arrival = now
      let before = millrace_malloc_thread_requests()
      _ = receiver.take(packet.span, isRTCP: false, at: now)
      sender.forward(sound, payload.span, on: 1, at: now)
      _ = receiver.run(at: now)
      _ = sender.run(at: now)
      now += .milliseconds(5)
      if number > 100 { requests += millrace_malloc_thread_requests() - before }
    }
    #expect(taken.count == 600 && pair.b.idlePackets > 500 && target.b.idlePackets > 500)
    #expect(requests == 0)
  }
}
