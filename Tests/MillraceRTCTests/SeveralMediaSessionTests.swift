import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("sessions with several media of a kind", .timeLimit(.minutes(30)))
struct SeveralMediaSessionTests {
  private static let slots = 8

  /// What a member of a room offers: its own sound and pictures, and places for those of others.
  private func offered() -> [MediaSection] {
    var list = [MediaSection.audio(), .video(.sendOnly, codecs: [.vp8])]
    for _ in 0..<Self.slots { list.append(.audio(.receiveOnly)) }
    for _ in 0..<Self.slots { list.append(.video(.receiveOnly, codecs: [.vp8])) }
    return list
  }

  /// The counterpart, in another order: each section is for the m-line with its mid.
  private func counterpart() -> [MediaSection] {
    let all = offered().enumerated().map { index, section in
      var section = section
      section.mid = "\(index)"
      section.direction = section.direction.reversed
      return section
    }
    return all.reversed()
  }

  private func ends(on loop: RTCLoop) throws -> (a: SessionEnd, b: SessionEnd) {
    let identity = try DTLSIdentity()
    let (own, other) = (offered(), counterpart())
    return (
      SessionEnd(on: loop, identity) { $0.sections = own },
      SessionEnd(on: loop, identity) { $0.sections = other }
    )
  }

  private func media(_ end: SessionEnd, on loop: RTCLoop) async throws -> [SessionMedium] {
    let result = Locked<[SessionMedium]?>(nil)
    loop.perform {
      let media = end.session?.media ?? []
      result.withLock { $0 = media }
    }
    try await until { result.withLock { $0 } != nil }
    return result.withLock { $0 } ?? []
  }

  /// Sends sound in every medium of a session that sends it, until all has come to the other side with its medium.
  private func hear(_ sender: SessionEnd, _ receiver: SessionEnd, _ media: [Int], on loop: RTCLoop)
    async throws
  {
    let before = receiver.seen.withLock { $0.sounds.count }
    func isHeard() -> Bool {
      receiver.seen.withLock { Set($0.sounds.dropFirst(before).map(\.medium)) == Set(media) }
    }
    while !isHeard() {
      loop.perform {
        for medium in media { sender.session?.send([UInt8(medium), 1].span, duration: 960, on: medium) }
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    let (sounds, payloads) = receiver.seen.withLock { ($0.sounds, $0.payloads) }
    #expect(zip(sounds, payloads).dropFirst(before).allSatisfy { $0.medium == Int($1[0]) })
  }

  @Test("sound and pictures of sixteen others come with their media, and key frames are asked of each")
  func room() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try ends(on: loop)
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let (member, hub) = (try await media(a, on: loop), try await media(b, on: loop))
    #expect(member.count == 2 + 2 * Self.slots && member.map(\.mid) == hub.map(\.mid))
    #expect(member.map(\.direction) == hub.map(\.direction.reversed))
    #expect(hub[1].direction == .receiveOnly && hub[2].direction == .sendOnly)
    try await hear(b, a, [0] + Array(2..<2 + Self.slots), on: loop)
    try await hear(a, b, [0], on: loop)

    let videos = Array(2 + Self.slots..<2 + 2 * Self.slots)
    let pictures = videos.map { TestPicture.vp8(isKey: true, count: 2_000 + $0, number: $0) }
    let own = TestPicture.vp8(isKey: true, count: 3_000, number: 99)
    loop.perform {
      let now = Clock(.realtime).now
      for index in videos.indices {
        let bytes = pictures[index]
        b.session?.send(picture: bytes.span, isKey: true, captured: now, on: videos[index])
      }
      a.session?.send(picture: own.span, isKey: true, captured: now)
    }
    try await until { a.seen.withLock { $0.pictures.count } == Self.slots }
    try await until { b.seen.withLock { $0.pictures.count } == 1 }
    let seen = a.seen.withLock { $0.pictures }
    #expect(seen.allSatisfy { $0.bytes == pictures[$0.picture.medium - videos[0]] })
    #expect(b.seen.withLock { $0.pictures.map { $0.picture.medium } } == [1])

    loop.perform {
      a.session?.requestKeyFrame(medium: videos[3])
      b.session?.requestKeyFrame(medium: 1)
    }
    try await until { b.seen.withLock { $0.mediaWanted.contains(videos[3]) } }
    try await until { a.seen.withLock { $0.mediaWanted.contains(1) } }
  }

  @Test("an ICE restart by either side keeps all media", arguments: [true, false])
  func restart(_ byOfferer: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try ends(on: loop)
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let before = try await media(b, on: loop)
    let slots = [0] + Array(2..<2 + Self.slots)
    try await hear(b, a, slots, on: loop)
    let (first, second) = byOfferer ? (a, b) : (b, a)
    loop.perform {
      first.onDescription = { offer in loop.perform { second.session?.answer(offer) } }
      second.onDescription = { first.session?.accept($0) }
      first.session?.offerRestart()
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.descriptions.count } == 2 } }
    for end in [a, b] {
      let descriptions = end.seen.withLock { $0.descriptions }
      // The same sources in the same m-lines.
      #expect(descriptions[0].media.map(\.sources) == descriptions[1].media.map(\.sources))
      #expect(descriptions[1].restartsICE(after: descriptions[0]))
    }
    let after = try await media(b, on: loop)
    #expect(after == before)
    try await hear(b, a, slots, on: loop)
    try await hear(a, b, [0], on: loop)
  }

  @Test(
    "an offer with more m-lines adds media where there are sections for them, and disturbs no other",
    arguments: [true, false])
  func more(_ isWanted: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try ends(on: loop)
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let before = try await media(b, on: loop)
    loop.perform {
      a.onDescription = { description in
        var offer = description
        var added = offer.media[2]
        added.mid = "more"
        offer.media.append(added)
        offer.groups = [SDPGroup("BUNDLE", offer.media.compactMap { $0.mid })]
        var section = MediaSection.audio(.sendOnly)
        section.mid = "more"
        let sections = isWanted ? [section] : []
        let changed = offer
        loop.perform { b.session?.answer(changed, adding: sections) }
      }
      b.onDescription = { description in
        // The session that offered knows nothing of the m-line.
        var answer = description
        answer.media.removeLast()
        answer.groups = [
          SDPGroup("BUNDLE", answer.media.compactMap { $0.isRejected ? nil : $0.mid })
        ]
        a.session?.accept(answer)
      }
      a.session?.offerRestart()
    }
    try await until { b.seen.withLock { $0.descriptions.count } == 2 }
    let answer = try #require(b.seen.withLock { $0.descriptions.last })
    let after = try await media(b, on: loop)
    #expect(answer.media.count == before.count + 1)
    #expect(answer.media.last?.isRejected == !isWanted)
    #expect(Array(after.prefix(before.count)) == before)
    #expect(after.dropFirst(before.count).map(\.mid) == (isWanted ? ["more"] : []))
    if isWanted {
      let sources = answer.media.flatMap { $0.sources.map(\.ssrc) }
      #expect(after.last?.direction == .sendOnly && Set(sources).count == sources.count)
    }
    try await hear(b, a, [0] + Array(2..<2 + Self.slots), on: loop)
    try await hear(a, b, [0], on: loop)
  }

  @Test("an m-line for which there is no section is refused, and the others work")
  func refused() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let identity = try DTLSIdentity()
    let a = SessionEnd(on: loop, identity) {
      $0.sections = [.audio(), .audio(.receiveOnly), .audio(.receiveOnly)]
    }
    let b = SessionEnd(on: loop, identity) {
      var (first, last) = (MediaSection.audio(), MediaSection.audio(.sendOnly))
      (first.mid, last.mid) = ("0", "2")
      $0.sections = [first, last]
    }
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    let (own, other) = (try await media(a, on: loop), try await media(b, on: loop))
    #expect(own.map(\.mid) == ["0", "2"] && other.map(\.mid) == ["0", "2"])
    try await hear(b, a, [0, 1], on: loop)
    try await hear(a, b, [0], on: loop)
  }
}
