import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

@Suite("pictures of a session")
struct SessionVideoTests {
  /// Sends pictures at 25 a second, every `interval`th a key frame, and lets a second more pass.
  private func playVideo(
    _ pair: MediaPair, _ codec: RTPCodec, pictures: Int, keyInterval: Int = 1_000, count: Int = 3_000
  ) -> [[UInt8]] {
    var made: [[UInt8]] = []
    pair.run(milliseconds: pictures * 40, step: 40) { number in
      let isKey = number % keyInterval == 0
      let picture = TestPicture.make(codec, isKey: isKey, count: count, number: number)
      made.append(picture)
      pair.a.send(picture, isKey: isKey, at: pair.now)
    }
    pair.run(milliseconds: 1_500)
    return made
  }

  @Test("pictures pass whole and in order, both ways", arguments: [RTPCodec.h264, .vp8])
  func whole(_ codec: RTPCodec) throws {
    let pair = try MediaPair([.audio(), .video(codecs: [codec])])
    #expect(pair.a.media?.pictureCodec?.name == codec.name)
    var made: [[UInt8]] = []
    pair.run(milliseconds: 2_000, step: 40) { number in
      let picture = TestPicture.make(codec, isKey: number == 0, count: 2_500, number: number)
      made.append(picture)
      for end in [pair.a, pair.b] { end.send(picture, isKey: number == 0, at: pair.now) }
    }
    pair.run(milliseconds: 500)
    for end in [pair.a, pair.b] {
      #expect(end.pictures.map(\.bytes) == made)
      #expect(end.pictures.map(\.picture.isKey) == [true] + Array(repeating: false, count: made.count - 1))
      #expect(end.pictures.allSatisfy { !$0.picture.isDamaged && !$0.picture.followsLoss })
      let times = end.pictures.map(\.picture.timestamp)
      #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 3_600 })
      let statistics = try #require(end.media?.statistics.video)
      #expect(statistics.sentPictures == 50 && statistics.receivedPictures == 50)
      #expect(statistics.lost == 0 && statistics.retransmitted == 0 && statistics.refused == 0)
    }
  }

  @Test("the wall clock of a picture's capture is known after the first report")
  func capture() throws {
    let pair = try MediaPair([.audio(), .video(codecs: [.h264])])
    _ = playVideo(pair, .h264, pictures: 75)
    let pictures = pair.b.pictures.map(\.picture)
    let (first, last) = (try #require(pictures.first), try #require(pictures.last))
    #expect(first.capture == 0)
    let wall = WallClock.ntp(at: last.arrival).unixNanoseconds + 2_208_988_800_000_000_000
    // It was captured one way, and its time at the pace, before it came.
    #expect(wall - last.capture > .milliseconds(19) && wall - last.capture < .milliseconds(200))
  }

  @Test(
    "a large key frame leaves at a pace, and no packet is larger than 1,200 bytes",
    arguments: [RTPCodec.h264, .vp8])
  func paced(_ codec: RTPCodec) throws {
    let pair = try MediaPair([.video(codecs: [codec])])
    let picture = TestPicture.make(codec, isKey: true, count: 60_000, number: 1)
    var perMillisecond: [Int] = []
    var last = 0
    pair.drops = { end, packet in
      if end === pair.a, !packet.isRTCP {
        #expect(packet.bytes.count <= 1_200)
        last += 1
      }
      return false
    }
    defer { pair.drops = { _, _ in false } }
    pair.a.send(picture, isKey: true, at: pair.now)
    pair.run(milliseconds: 2_500, step: 1) { _ in
      perMillisecond.append(last)
      last = 0
    }
    // 750,000 bits a second are 0.08 packets in a millisecond; 5 ms may leave at once.
    #expect(perMillisecond.allSatisfy { $0 <= 4 })
    #expect(pair.b.pictures.map(\.bytes) == [picture])
  }

  @Test(
    "nearly all packets that are lost are repeated in time", arguments: [RTPCodec.h264, .vp8], [true, false])
  func repaired(_ codec: RTPCodec, _ hasRTX: Bool) throws {
    var codec = codec
    if !hasRTX { codec.rtxPayloadType = nil }
    let pair = try MediaPair([.audio(), .video(codecs: [codec])])
    var random = TestRandom(state: 5)
    // More than 10 % would make the sender slower than these pictures need.
    pair.drops = { end, packet in
      end === pair.a && !packet.isRTCP && Int.random(in: 0..<100, using: &random) < 7
    }
    defer { pair.drops = { _, _ in false } }
    let made = playVideo(pair, codec, pictures: 400, keyInterval: 50, count: 2_000)
    let whole = pair.b.pictures.filter { !$0.picture.isDamaged }
    // Without repetitions 86 of 100 would be whole.
    #expect(whole.count >= made.count * 97 / 100)
    let known = Set(made)
    #expect(whole.allSatisfy { known.contains($0.bytes) })
    let (sent, received) = (
      try #require(pair.a.media?.statistics.video), try #require(pair.b.media?.statistics.video)
    )
    #expect(sent.retransmitted > 25 && received.recovered > 25)
  }

  @Test("a key frame that is lost for good is asked for, and wanted from the encoder")
  func lostKeyFrame() throws {
    let pair = try MediaPair([.video(codecs: [.h264])])
    pair.drops = { end, packet in end === pair.a && !packet.isRTCP && pair.now < .milliseconds(1_000_030) }
    defer { pair.drops = { _, _ in false } }
    pair.a.send(TestPicture.h264(isKey: true, count: 500, number: 0), isKey: true, at: pair.now)
    pair.run(milliseconds: 600, step: 40) { number in
      guard number > 0 else { return }
      pair.a.send(TestPicture.h264(isKey: false, count: 500, number: number), isKey: false, at: pair.now)
    }
    #expect((1...3).contains(pair.a.keyFramesWanted))
    #expect(try #require(pair.b.media?.statistics.video).keyFramesAsked >= 1)
    let key = TestPicture.h264(isKey: true, count: 500, number: 99)
    pair.a.send(key, isKey: true, at: pair.now)
    pair.run(milliseconds: 200)
    let wanted = pair.a.keyFramesWanted
    #expect(pair.b.pictures.last?.bytes == key)
    pair.run(milliseconds: 3_000)
    #expect(pair.a.keyFramesWanted == wanted)
  }

  @Test("a request of this side reaches the encoder of the other, at most every 500 ms")
  func requested() throws {
    let pair = try MediaPair([.video(codecs: [.vp8])])
    _ = playVideo(pair, .vp8, pictures: 10)
    #expect(pair.a.keyFramesWanted == 0)
    for _ in 0..<10 { pair.b.media?.requestKeyFrame(at: pair.now) }
    pair.run(milliseconds: 100)
    #expect(pair.a.keyFramesWanted == 1)
    #expect(pair.b.media?.statistics.video.keyFramesAsked == 1)
  }

  @Test("PLI and FIR are reported at most every 300 ms, and a FIR that is repeated once")
  func wishes() throws {
    let pair = try MediaPair([.video(codecs: [.vp8])])
    let media = try #require(pair.a.media)
    _ = playVideo(pair, .vp8, pictures: 5)
    let ssrc = try #require(pair.b.pictures.first?.picture.ssrc)
    for _ in 0..<20 { pair.a.take(TestPacket.pictureLoss(of: ssrc), isRTCP: true, at: pair.now) }
    #expect(pair.a.keyFramesWanted == 1)
    // What was wanted meanwhile is reported later, unless a key frame was sent.
    pair.run(milliseconds: 400)
    #expect(pair.a.keyFramesWanted == 2)
    for _ in 0..<3 {
      pair.run(milliseconds: 400)
      pair.a.take(TestPacket.fullIntra(of: ssrc, number: 7), isRTCP: true, at: pair.now)
    }
    #expect(pair.a.keyFramesWanted == 3)
    pair.a.take(TestPacket.pictureLoss(of: ssrc &+ 1), isRTCP: true, at: pair.now + .milliseconds(400))
    #expect(pair.a.keyFramesWanted == 3)
    #expect(media.statistics.video.keyFramesWanted == 21)
  }

  @Test("a peer that asks for everything again and again gets no flood")
  func flood() throws {
    let pair = try MediaPair([.video(codecs: [.h264])])
    _ = playVideo(pair, .h264, pictures: 20)
    let ssrc = try #require(pair.b.pictures.first?.picture.ssrc)
    pair.a.sent = []
    for number in 0..<UInt16.max {
      pair.a.take(TestPacket.nack(of: ssrc, number), isRTCP: true, at: pair.now)
    }
    #expect(pair.a.sent.count <= 100)
  }

  @Test("what is no picture of the codec is refused, and a key frame is wanted instead")
  func refused() throws {
    let pair = try MediaPair([.video(codecs: [.h264])])
    for bytes: [UInt8] in [[], [1, 2, 3], [0, 0, 1], [UInt8](repeating: 1, count: 2 << 20)] {
      pair.a.send(bytes, isKey: true, at: pair.now)
    }
    #expect(pair.a.sent.isEmpty)
    #expect(pair.a.media?.statistics.video.refused == 4)
    #expect(pair.a.keyFramesWanted == 1)
    let picture = TestPicture.h264(isKey: true, count: 10, number: 1)
    pair.a.send(picture, isKey: true, at: pair.now)
    pair.run(milliseconds: 100)
    #expect(pair.b.pictures.map(\.bytes) == [picture])
  }

  @Test("an encoder that ignores its rate fills no memory: pictures without room are refused")
  func overrun() throws {
    let pair = try MediaPair([.video(codecs: [.vp8])])
    let picture = TestPicture.vp8(isKey: true, count: 900_000, number: 1)
    for _ in 0..<20 { pair.a.send(picture, isKey: true, at: pair.now) }
    #expect(try #require(pair.a.media?.statistics.video).refused >= 17)
    // What was taken leaves within about two seconds, and whole.
    pair.run(milliseconds: 12_000)
    #expect(pair.b.pictures.allSatisfy { !$0.picture.isDamaged } && !pair.b.pictures.isEmpty)
  }

  @Test("a link that becomes narrow lowers what pictures may take, and a wide one raises it")
  func bandwidth() throws {
    let pair = try MediaPair([.audio(), .video(codecs: [.vp8])])
    func stream(seconds: Int) {
      pair.run(milliseconds: seconds * 1_000, step: 40) { number in
        let rate = pair.a.allocations.last?.video ?? 300_000
        guard rate > 0 else { return }
        let picture = TestPicture.vp8(isKey: number == 0, count: max(50, rate / 8 / 25), number: number)
        pair.a.send(picture, isKey: number == 0, at: pair.now)
      }
    }
    pair.rate = 3_000_000
    stream(seconds: 20)
    let wide = try #require(pair.a.allocations.last?.video)
    #expect(wide > 400_000)
    pair.rate = 250_000
    stream(seconds: 10)
    let narrow = try #require(pair.a.allocations.last)
    #expect(narrow.video < 250_000 && narrow.video < wide / 2)
    #expect(narrow.sound >= 16_000)
    #expect(try #require(pair.a.media?.statistics.sendBitrate) > 0)
    let steps = zip(pair.a.allocations, pair.a.allocations.dropFirst())
    #expect(
      steps.allSatisfy { old, new in
        Double(abs(new.video - old.video)) >= 0.05 * Double(old.video)
          || Double(abs(new.sound - old.sound)) >= 0.05 * Double(old.sound)
      })
  }

  @Test("where only REMB was agreed on, the estimate of the receiver bounds the sender")
  func remb() throws {
    var codec = RTPCodec.vp8
    codec.feedback.removeAll { $0 == .transportCC }
    var (sound, video) = (MediaSection.audio(), MediaSection.video(codecs: [codec]))
    for index in sound.codecs.indices { sound.codecs[index].feedback = [] }
    sound.headerExtensions.removeAll { $0 == RTPHeaderExtension.transportCC }
    video.headerExtensions.removeAll { $0 == RTPHeaderExtension.transportCC }
    let pair = try MediaPair([sound, video])
    pair.rate = 200_000
    var estimates = 0
    pair.drops = { end, packet in
      if end === pair.b, packet.isRTCP, packet.bytes.count > 16,
        packet.bytes[12..<16] == [0x52, 0x45, 0x4D, 0x42]
      {
        estimates += 1
      }
      return false
    }
    defer { pair.drops = { _, _ in false } }
    _ = playVideo(pair, codec, pictures: 250, count: 1_500)
    #expect(estimates >= 3)
    let estimate = try #require(pair.a.media?.statistics.sendBitrate)
    #expect(estimate > 0 && estimate < 260_000)
  }

  @Test("a source that changes, restarts, wraps or is reordered continues with whole pictures")
  func sources() throws {
    let pair = try MediaPair([.video(codecs: [.vp8])])
    let payloadType = try #require(pair.b.media?.pictureCodec?.payloadType)
    var sequence: UInt16 = 65_530
    func picture(_ ssrc: UInt32, _ timestamp: UInt32, reorders: Bool = false) {
      // A descriptor without extension, and a key frame in three packets.
      let frame = TestPicture.vp8(isKey: true, count: 90, number: 1)
      var packets = [
        TestPacket.rtp(
          payloadType, sequence: sequence, timestamp: timestamp, ssrc: ssrc,
          payload: [0x10] + Array(frame[..<50])),
        TestPacket.rtp(
          payloadType, sequence: sequence &+ 1, timestamp: timestamp, ssrc: ssrc,
          payload: [0x00] + Array(frame[50..<80])),
        TestPacket.rtp(
          payloadType, sequence: sequence &+ 2, timestamp: timestamp, ssrc: ssrc, marker: true,
          payload: [0x00] + Array(frame[80...])),
      ]
      sequence &+= 3
      if reorders { packets.swapAt(1, 2) }
      for packet in packets { pair.b.take(packet, isRTCP: false, at: pair.now) }
      // Copies change nothing.
      for packet in packets { pair.b.take(packet, isRTCP: false, at: pair.now) }
      pair.run(milliseconds: 40)
    }
    for number in 0..<5 { picture(70, UInt32.max - 3_600 &+ UInt32(number) * 3_600, reorders: number > 0) }
    #expect(pair.b.pictures.count == 5)
    let times = pair.b.pictures.map(\.picture.timestamp)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 3_600 })
    // Another source, and then the first with other numbers: its first packet alone proves nothing.
    picture(71, 5)
    #expect(pair.b.pictures.count == 6 && pair.b.pictures.last?.picture.ssrc == 71)
    sequence = 30_000
    picture(70, 900_000)
    picture(70, 903_600)
    #expect(pair.b.pictures.filter { $0.picture.ssrc == 70 && !$0.picture.isDamaged }.count == 6)
    // As many sources as there may be, and one more.
    for ssrc in UInt32(100)..<200 { picture(ssrc, 1) }
    #expect(Set(pair.b.pictures.map(\.picture.ssrc)).count == VideoEngine.sources)
    pair.b.take(TestPacket.goodbye(71), isRTCP: true, at: pair.now)
    #expect(pair.b.ended == [71])
    picture(71, 7_205)
    #expect(pair.b.pictures.last?.picture.ssrc != 71)
  }

  @Test("packets that are empty, huge, cut or claim too much are refused, and pictures continue")
  func hostile() throws {
    let pair = try MediaPair([.audio(), .video(codecs: [.h264])])
    _ = playVideo(pair, .h264, pictures: 5)
    let ssrc = try #require(pair.b.pictures.first?.picture.ssrc)
    let payloadType = try #require(pair.b.media?.pictureCodec?.payloadType)
    var random = TestRandom(state: 9)
    for count in [0, 1, 11, 12, 13, 1_500, 65_000] {
      pair.b.take(
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }, isRTCP: false, at: pair.now)
      pair.b.take(
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }, isRTCP: true, at: pair.now)
      guard count >= 12 else { continue }
      let payload = (12..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      // The next number, and one behind a hole.
      for sequence in [UInt16(0), 9_000, 9_002] {
        pair.b.take(
          TestPacket.rtp(payloadType, sequence: sequence, ssrc: 1_000 &+ UInt32(count), payload: payload),
          isRTCP: false, at: pair.now)
      }
    }
    for type in UInt8(192)...223 {
      pair.b.take([0x81, type, 0xFF, 0xFF] + TestPacket.word(ssrc), isRTCP: true, at: pair.now)
      pair.b.take([0x9F, type, 0, 1] + TestPacket.word(ssrc), isRTCP: true, at: pair.now)
    }
    pair.run(milliseconds: 500)
    #expect(try #require(pair.b.media?.statistics.sound).refused > 30)
    let before = pair.b.pictures.filter { $0.picture.ssrc == ssrc }.count
    pair.a.send(TestPicture.h264(isKey: true, count: 5_000, number: 3), isKey: true, at: pair.now)
    pair.run(milliseconds: 500)
    #expect(pair.b.pictures.filter { $0.picture.ssrc == ssrc && !$0.picture.isDamaged }.count == before + 1)
  }

  @Test("a hole is waited for as long as it can be cured, and what follows is marked")
  func hole() throws {
    let pair = try MediaPair([.video(codecs: [.h264])])
    let payloadType = try #require(pair.b.media?.pictureCodec?.payloadType)
    func slice(_ sequence: UInt16) {
      pair.b.take(
        TestPacket.rtp(
          payloadType, sequence: sequence, timestamp: UInt32(sequence) * 3_600, ssrc: 5, marker: true,
          payload: [0x41, 0x88, 1, 2, 3]), isRTCP: false, at: pair.now)
    }
    slice(1)
    slice(3)
    #expect(pair.b.pictures.count == 1)
    pair.run(milliseconds: 150)
    #expect(pair.b.pictures.count == 1)
    pair.run(milliseconds: 100)
    #expect(pair.b.pictures.count == 2 && pair.b.pictures.last?.picture.followsLoss == true)
    slice(2)
    #expect(pair.b.pictures.count == 2)
    // A jump beyond all numbers that wait.
    slice(700)
    pair.run(milliseconds: 1)
    #expect(pair.b.pictures.count == 3)
  }
}
