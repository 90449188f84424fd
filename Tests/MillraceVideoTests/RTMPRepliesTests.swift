import Glibc
import MillraceCore
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

/// Serialized: each test has a server, a sender and a player on the real-time clock.
@Suite("rtmp.pull, sound that belongs to replies", .serialized)
struct RTMPRepliesTests {
  private let folder = TemporaryFolder()

  private static let rate: Int64 = 48_000
  /// Lengths in samples: what is said, the quiet that ends it, and one pass of the video.
  private static let speech = 6 * rate
  private static let gap = 5 * rate
  private static let pass = 14 * rate
  /// What the codec adds to the end of a sound, and packets that hold the end of something.
  private static let blur = rate / 2

  /// Six seconds of a tone with a pause of 200 ms, and eight seconds of silence. The quiet that ends an utterance is longer than a busy
  /// machine may delay the sender, and shorter than the silence.
  private func makeVideo() -> String {
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (160, 120, 350)
    video.colour = { _ in (60, 128, 128) }
    video.sound = (0..<Int(Self.pass)).map { frame in
      let isLoud = frame < 192_000 || (201_600..<Int(Self.speech)).contains(frame)
      return isLoud ? Int16(8_000 * sin(2 * .pi * 440 * Double(frame) / 48_000)) : 0
    }
    let path = folder.file("speech.mp4")
    video.write(to: path)
    return path
  }

  private final class Player {
    let bench: NodeBench
    var pictures: [CapturedPacket] = []
    var sound: [CapturedPacket] = []
    var events: [BenchEvent] = []

    init(_ url: String, _ parameters: [String: ParameterValue] = [:]) throws {
      var values: [String: ParameterValue] = [
        "width": 160, "height": 120, "first": 20, "most": 100, "timeout": 60_000,
        "replies": true, "utteranceGap": 5_000,
      ]
      values.merge(parameters) { _, new in new }
      bench = try NodeBench(
        RTMPPull.self, values,
        inputs: ["address": OutputShape(.event, packetDuration: nil, packetBytes: 4_096)],
        outputs: ["out", "audio", "events"], clock: .realtime)
      // A bench begins without a reply. What came before an interruption would be cancelled.
      bench.interrupt()
      tell(#"{"event":"stream","url":"\#(url)"}"#)
    }

    /// An event of the service.
    func tell(_ event: String) { bench.push(text: event, to: "address") }

    func wait(_ seconds: Double = 240, _ condition: () -> Bool) throws -> Bool {
      try bench.wait(seconds) {
        pictures += bench.packets()
        sound += bench.packets("audio")
        events += bench.events()
        return condition()
      }
    }

    /// Indices of packets that end an utterance.
    var ends: [Int] { sound.indices.filter { sound[$0].flags.contains(.endOfUtterance) } }
    var words: String { events.map(\.json).joined(separator: "\n") }
    /// Samples that were cancelled; nil before it is reported.
    var cancelled: Int? {
      events.first { $0.name == "cancelled" }.map { Int($0.number("samples") ?? 0) }
    }

    /// The packets from an index on that were cancelled.
    func void(from index: Int) -> ArraySlice<CapturedPacket> {
      var frames = 0
      return sound[index...].prefix { packet in
        frames += packet.duration
        return frames <= cancelled ?? .max
      }
    }
  }

  private static func isLoud(_ packet: CapturedPacket) -> Bool {
    packet.int16.contains { abs(Int($0)) > 1_000 }
  }

  @Test(
    "an utterance is of the current reply and ends with the gap; silence between is of none, and pauses do not end it",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func utterances() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player(server.url("speech"))
    let hasTwo = try player.wait { player.ends.count >= 2 }
    try #require(hasTwo, "sender: \(stream.problem ?? "runs")\n\(player.words)")
    let sound = player.sound
    #expect(sound.filter(Self.isLoud).allSatisfy { $0.generation == 1 })
    #expect(sound.contains { $0.generation == 0 } && player.pictures.allSatisfy { $0.generation == 0 })
    // The second utterance: speech with a pause, and the gap.
    let begin = player.ends[0] + 1
    let speech = sound[begin...player.ends[1]].drop { $0.generation == 0 }
    #expect(speech.allSatisfy { $0.generation == 1 })
    let length = Int64(speech.reduce(0) { $0 + $1.duration })
    #expect(abs(length - Self.speech - Self.gap) < Self.blur, "\(length)")
    let quiet = Int64(speech.reversed().prefix { !Self.isLoud($0) }.reduce(0) { $0 + $1.duration })
    #expect((Self.gap..<Self.gap + Self.blur).contains(quiet), "\(quiet)")
    #expect(zip(sound, sound.dropFirst()).allSatisfy { $0.position + Int64($0.duration) <= $1.position })
    #expect(!player.words.contains("cancelled"))
    #expect(player.bench.close() == [])
  }

  @Test(
    "an interruption silences the rest of the utterance while the picture continues, and the next one is of the next reply",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func interruption() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player(server.url("speech"))
    // At the beginning of an utterance, so that its rest is there to be cancelled.
    let speaks = try player.wait {
      guard let end = player.ends.last else { return false }
      return player.sound[(end + 1)...].contains(where: Self.isLoud)
    }
    try #require(speaks, "\(player.words)")
    let end = try #require(player.ends.last)
    let begin = try #require(player.sound[(end + 1)...].first(where: Self.isLoud)).position
    player.bench.interrupt()
    let (index, pictures) = (player.sound.count, player.pictures.count)
    let isOver = try player.wait { player.cancelled != nil }
    try #require(isOver, "\(player.words)")
    // The pause, the second part and the gap, wherever the interruption came; all of it is silence of no reply.
    let void = player.void(from: index)
    let last = try #require(void.last)
    let behind = last.position + Int64(last.duration)
    #expect(abs(behind - begin - Self.speech - Self.gap) < Self.blur, "\(behind) \(begin)")
    #expect(void.reduce(0) { $0 + $1.duration } == player.cancelled)
    #expect(void.allSatisfy { $0.generation == 0 && $0.int16.allSatisfy { $0 == 0 } })
    #expect(player.pictures.count > pictures + 10)
    let isNext = try player.wait { player.sound[index...].contains { $0.generation != 0 } }
    try #require(isNext, "\(player.words)")
    let next = try #require(player.sound[index...].first { $0.generation != 0 })
    #expect(next.generation == 2 && Self.isLoud(next))
    #expect(abs(next.position - begin - Self.pass) < Self.blur, "\(next.position) \(begin)")
    #expect(player.bench.close() == [])
  }

  @Test(
    "a stall of the network does not end a cancellation: what it held up is cancelled, too",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func stall() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player(server.url("speech"))
    let speaks = try player.wait { player.sound.contains(where: Self.isLoud) }
    try #require(speaks, "\(player.words)")
    stream.hold()
    player.bench.interrupt()
    let index = player.sound.count
    // Until no sound has come for longer than the gap.
    var (count, since) = (index, Clock(.realtime).now)
    while Clock(.realtime).now - since < .milliseconds(6_000) {
      _ = try player.wait(0.1) { false }
      if player.sound.count != count { (count, since) = (player.sound.count, Clock(.realtime).now) }
    }
    #expect(player.cancelled == nil, "\(player.words)")
    stream.release()
    let isOver = try player.wait { player.cancelled != nil }
    try #require(isOver, "\(player.words)")
    let void = player.void(from: index)
    #expect(void.endIndex > count && void.reduce(0) { $0 + $1.duration } == player.cancelled)
    #expect(void.allSatisfy { $0.generation == 0 && $0.int16.allSatisfy { $0 == 0 } })
    #expect(player.bench.close() == [])
  }

  @Test(
    "a cancellation ends with the stream's own event, not with that of a dialogue, which is ahead of the stream",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func nextReply() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    // The silence is too short to end a cancellation.
    let player = try Player(server.url("speech"), ["utteranceGap": 10_000])
    let speaks = try player.wait { player.sound.contains(where: Self.isLoud) }
    try #require(speaks, "\(player.words)")
    player.bench.interrupt()
    let index = player.sound.count
    player.tell(#"{"event":"replyStarted","round":"7"}"#)
    let goesOn = try player.wait { player.sound.count > index + 20 }
    #expect(goesOn && player.cancelled == nil, "\(player.words)")
    #expect(player.sound[index...].allSatisfy { $0.generation == 0 && $0.int16.allSatisfy { $0 == 0 } })
    player.tell(#"{"event":"streamReplyStarted"}"#)
    let isNext = try player.wait { player.sound[index...].contains { $0.generation != 0 } }
    #expect(isNext && player.cancelled != nil, "\(player.words)")
    let next = try #require(player.sound[index...].first { $0.generation != 0 })
    #expect(next.generation == 2 && Self.isLoud(next))
    #expect(player.bench.close() == [])
  }

  @Test(
    "a stream that breaks off in an utterance ends it with a mark",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func brokenOff() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    try #require(stream.waitForStart())
    let player = try Player(server.url("speech"))
    let speaks = try player.wait { player.sound.contains { $0.generation == 1 } }
    #expect(speaks, "\(player.words)")
    stream.stop()
    let isMarked = try player.wait { !player.ends.isEmpty }
    #expect(isMarked)
    let mark = try #require(player.sound.last)
    #expect(mark.bytes.isEmpty && mark.generation == 1 && mark.duration == 0, "\(player.words)")
    let before = try #require(player.sound.dropLast().last)
    #expect(mark.position == before.position + Int64(before.duration))
    #expect(player.bench.close() == [])
  }

  @Test(
    "without `replies` an interruption changes nothing",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func live() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let player = try Player(server.url("speech"), ["replies": false])
    let speaks = try player.wait { player.sound.contains(where: Self.isLoud) }
    #expect(speaks)
    player.bench.interrupt()
    player.sound = []
    let goesOn = try player.wait { player.sound.filter(Self.isLoud).count > 20 }
    #expect(goesOn && player.sound.allSatisfy { $0.generation == 0 } && player.ends.isEmpty)
    #expect(player.bench.close() == [])
  }
}
