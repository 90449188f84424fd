import CMillraceSys
import Millrace
import MillraceCore
import MillraceDoubles
internal import MillraceJSON
import Synchronization

/// A long voice that drives an avatar, available at once: what arrives at the double, and when.
enum AvatarSpeech {
  static let rate = 16_000
  /// The schedule of a reply's packets: so many at once, then one in each period. The packets have 160 ms.
  private static let atOnce = 6
  private static let period = 120.0

  /// What the double observed.
  private struct Seen: Sendable {
    /// Arrivals in nanoseconds of the monotonic clock.
    var times: [Int64] = []
    var bytes: [UInt8] = []
  }

  /// An avatar driven by a file that is read as fast as the node takes it.
  static func graph(_ stage: DialogueStage, port: Int, _ path: String, loops: Bool = false) -> String? {
    guard let bot = stage.members(port: port, .voicedAvatar) else { return nil }
    let mic = #"{ "type": "audio.read", "path": "\#(path)", "pace": false, "loop": \#(loops) }"#
    return """
      { "millrace": 1, "name": "avatar", "clock": "realtime",
        "nodes": { "mic": \(mic), "bot": \(stage.json(bot, ["start": "now"])) }, "links": ["mic -> bot.audio"] }
      """
  }

  static func run(_ stage: DialogueStage, seconds length: Double) throws -> [Figure] {
    let folder = try Workspace()
    let path = folder.file("voice.wav")
    let voice = Sound.voice(seconds: length, rate: rate)
    try Sound.write(voice, rate: rate, to: path)
    let seen = Mutex(Seen())
    var observer = AudioObserver()
    observer.received = { frame in
      let time = millrace_monotonic_ns()
      seen.withLock { seen in
        seen.times.append(time)
        seen.bytes += frame
      }
    }
    let double = try stage.double("{}", observer)
    defer { double.stop() }
    let run = try stage.start(
      graph(stage, port: double.port, path), on: Engine(catalogue: stage.catalogue, workers: 1))
    guard let report = run.waitUntilStopped(timeout: .seconds(Int64(length) + 60)) else {
      throw MeasurementProblem(
        "a voice of \(Int(length)) s was not spoken \(Int(length)) s and a minute later")
    }
    if let failure = report.failure { throw MeasurementProblem("the avatar failed: \(failure)") }
    return figures(seen.withLock { $0 }, voice, Double(double.seen.violations.count), length)
  }

  private static func figures(
    _ seen: Seen, _ voice: [Int16], _ violations: Double, _ length: Double
  ) -> [Figure] {
    let first = seen.times.first ?? 0
    let delays = seen.times.enumerated().map { index, time in
      Double(time - first) / 1e6 - Double(max(0, index + 1 - atOnce)) * period
    }.sorted()
    // The last packet may be filled up with silence.
    let samples = stride(from: 0, to: seen.bytes.count - 1, by: 2).map {
      Int16(truncatingIfNeeded: Int(seen.bytes[$0]) | Int(seen.bytes[$0 + 1]) << 8)
    }
    let wrong = zip(samples, voice).count { $0 != $1 } + max(0, voice.count - samples.count)
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure("avatars", "voice of \(Int(length)) s: \(what)", unit: unit, goal: goal, samples: [value])
    }
    return [
      row("packet behind its schedule, p99.9", "ms", delays.percentile(0.999), goal: "<= 5"),
      row("packet behind its schedule, latest", "ms", delays.last ?? .nan),
      row("packet ahead of its schedule, earliest", "ms", max(0, -(delays.first ?? .nan)), goal: "<= 5"),
      row("packets", "", Double(delays.count)),
      row("samples lost or in another place", "", Double(wrong), goal: "0"),
      row("violations", "", violations, goal: "0"),
    ]
  }
}
