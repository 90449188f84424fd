import Foundation
import Glibc
import Testing

/// How many minutes to measure for.
private let minutes = ProcessInfo.processInfo.environment["MILLRACE_MINUTES"].flatMap { Int($0) } ?? 0

/// What only minutes show. `make mouth-to-ear` runs these; elsewhere they report themselves skipped.
@Suite(
  "devices of a sound server, for minutes", .serialized,
  .enabled(
    if: PulseServer.isInstalled && minutes > 0,
    "make mouth-to-ear MINUTES=10 installs a sound server and runs these"),
  .timeLimit(.minutes(minutes + 10)))
struct LongRigTests {
  /// Parameters of the graph to try, as in `--set`.
  private static var settings: [String] {
    (ProcessInfo.processInfo.environment["MILLRACE_SET"] ?? "").split(separator: " ").flatMap {
      ["--set", String($0)]
    }
  }

  @Test("mouth to ear of the program itself: delay does not grow, and nearly nothing is missed")
  func mouthToEar() throws {
    let server = try PulseServer()
    let program = try #require(RigProgram.millrace, "MILLRACE_PROGRAM says where the program is")
    let log = server.folder + "/events.jsonl"
    let running = try RigProgram(
      program, ["run", Running.shipped("device-loop"), "--set", "log=\(log)"] + Self.settings,
      server.environment)
    let (microphone, loudspeaker) = try server.record(
      playing: LagMeter.noise(seconds: Double(minutes) * 60), after: 2)
    running.interrupt()
    running.wait(seconds: 10)
    let meter = LagMeter(microphone, loudspeaker)
    let events = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    let told = ["underrun", "late", "jump", "overrun", "deviceLost"].map { name in
      "\(name) \(events.count { $0.contains("\"event\":\"\(name)\"") })"
    }
    print("\(minutes) min of mouth to ear: \(meter.words); events: \(told.joined(separator: ", "))")
    try #require(meter.lags.count > meter.windows / 2, "\(meter.words)")
    let drift = meter.drift(after: 30)
    #expect(abs(drift) < 5, "the delay grows by \(drift) ppm")
  }
}
