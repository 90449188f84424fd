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

  /// Four seconds: 1.2 s of a tone, a pause of 200 ms, another 600 ms of the tone, and silence.
  private func makeVideo() -> String {
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (160, 120, 100)
    video.colour = { _ in (60, 128, 128) }
    video.sound = (0..<192_000).map { frame in
      let isLoud = frame < 57_600 || (67_200..<96_000).contains(frame)
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
        "url": .string(url), "width": 160, "height": 120, "first": 20, "most": 100, "timeout": 60_000,
        // Longer than a busy machine may delay the sender, and shorter than the silence.
        "replies": true, "utteranceGap": 1_200,
      ]
      values.merge(parameters) { _, new in new }
      bench = try NodeBench(
        RTMPPull.self, values, outputs: ["out", "audio", "events"], clock: .realtime)
      // A bench begins without a reply.
      bench.interrupt()
    }

    func wait(_ condition: () -> Bool) throws -> Bool {
      try bench.wait(120) {
        pictures += bench.packets()
        sound += bench.packets("audio")
        events += bench.events()
        return condition()
      }
    }

    /// Indices of packets that end an utterance.
    var ends: [Int] { sound.indices.filter { sound[$0].flags.contains(.endOfUtterance) } }
    var words: String { events.map(\.json).joined(separator: "\n") }
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
    try #require(hasTwo, "\(player.words)")
    let sound = player.sound
    #expect(sound.filter(Self.isLoud).allSatisfy { $0.generation == 1 })
    #expect(sound.contains { $0.generation == 0 } && player.pictures.allSatisfy { $0.generation == 0 })
    // The second utterance: two seconds of speech with a pause, and the gap.
    let begin = player.ends[0] + 1
    let speech = sound[begin...player.ends[1]].drop { $0.generation == 0 }
    #expect(speech.allSatisfy { $0.generation == 1 })
    let length = speech.reduce(0) { $0 + $1.duration }
    #expect((48_000 * 31 / 10...48_000 * 34 / 10).contains(length), "\(length)")
    let quiet = speech.reversed().prefix { !Self.isLoud($0) }.reduce(0) { $0 + $1.duration }
    #expect((57_600...60_000).contains(quiet), "\(quiet)")
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
    // In the first half of an utterance, so that its rest is there to be void.
    let speaks = try player.wait {
      guard let end = player.ends.last else { return false }
      return player.sound[(end + 1)...].contains(where: Self.isLoud)
    }
    #expect(speaks, "\(player.words)")
    player.bench.interrupt()
    _ = player.bench.packets("audio")
    player.sound = []
    let pictures = player.pictures.count
    let isOver = try player.wait { player.events.contains { $0.name == "cancelled" } }
    try #require(isOver, "\(player.words)")
    let samples = player.events.first { $0.name == "cancelled" }?.number("samples") ?? 0
    // At least the pause, the second part and the gap; all of it is silence of no reply.
    #expect(samples >= 48_000 * 1.3 && samples <= 48_000 * 3.4, "\(samples)")
    var frames = 0
    let void = player.sound.prefix { packet in
      frames += packet.duration
      return Double(frames) <= samples
    }
    #expect(void.count > 50 && void.allSatisfy { $0.generation == 0 && $0.int16.allSatisfy { $0 == 0 } })
    #expect(player.pictures.count > pictures + 10)
    let isNext = try player.wait { !player.ends.isEmpty }
    try #require(isNext)
    let speech = player.sound[void.count...player.ends[0]].filter { $0.generation != 0 }
    #expect(speech.allSatisfy { $0.generation == 2 } && speech.contains(where: Self.isLoud))
    let length = speech.reduce(0) { $0 + $1.duration }
    #expect(length >= 48_000 * 31 / 10, "\(length)")
    #expect(player.bench.close() == [])
  }

  @Test(
    "a stream that breaks off in an utterance ends it with a mark",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func brokenOff() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("speech"))
    try #require(stream.waitForStart())
    let player = try Player(server.url("speech"), ["utteranceGap": 2_500])
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
