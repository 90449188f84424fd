import Foundation
import Glibc
import Millrace
import MillraceAudio
import Testing

/// Minutes to measure.
private let minutes = ProcessInfo.processInfo.environment["MILLRACE_MINUTES"].flatMap { Int($0) } ?? 0

/// Measurements that take minutes. Run by `make mouth-to-ear`; skipped elsewhere.
@Suite(
  "devices of a sound server, for minutes", .serialized,
  .enabled(
    if: PulseServer.isInstalled && minutes > 0,
    "make mouth-to-ear MINUTES=10 installs a sound server and runs these"),
  .timeLimit(.minutes(minutes + 10)))
struct LongRigTests {
  /// Graph parameters to try, as in `--set`.
  private static var settings: [String] {
    (ProcessInfo.processInfo.environment["MILLRACE_SET"] ?? "").split(separator: " ").flatMap {
      ["--set", String($0)]
    }
  }

  /// How fast the node's known arrival delay decays, and its delay shrinks again, in parts per million (decision 38): 0.1 ms a second.
  private static let forgetting = 100.0

  @Test("mouth to ear of the program: delay does not grow, and almost no window is missed")
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
    print("\(minutes) min of mouth to ear: \(meter.description); events: \(told.joined(separator: ", "))")
    try #require(meter.lags.count > meter.windows / 2, "\(meter.description)")
    let drift = meter.drift(after: 30)
    #expect(drift < 5, "the delay grows by \(drift) ppm")
    // After a late arrival it shrinks on purpose, and never faster than that.
    #expect(drift > -Self.forgetting, "the delay shrinks by \(-drift) ppm")
    #expect(meter.misses * 200 < meter.windows, "\(meter.description)")
  }

  @Test(
    "a microphone clock 400 ppm slow: after half a minute the delay is constant, and nothing jumps")
  func drift() throws {
    let (seconds, skew) = (55.0, -400.0)
    let server = try PulseServer()
    let noise = LagMeter.noise(seconds: seconds)
    let file = server.folder + "/microphone.wav"
    var writer = try WAVWriter(
      path: file, format: WAVFormat(sampleRate: PulseServer.rate, channels: 1, encoding: .s16))
    try writer.write(noise.span)
    try writer.finish()
    let graph = server.folder + "/drift.json"
    try """
    { "millrace": 1, "name": "drift",
      "parameters": { "log": { "default": "-", "text": "where the events go" } },
      "nodes": {
        "mic": { "type": "audio.capture", "device": "file", "path": "\(file)", "rate": \(PulseServer.rate), "skew": \(skew) },
        "speaker": { "type": "audio.play", "device": "pulse", "latency": 8, "prebuffer": 2 },
        "log": { "type": "event.log", "path": "${log}" } },
      "links": [ "mic -> speaker", "speaker.events -> log.in1" ] }
    """.write(toFile: graph, atomically: true, encoding: .utf8)
    var told: [String] = []
    let (_, loudspeaker) = try server.record(after: 0.2) {
      let running = try Running(path: graph, in: server.folder)
      // The device ends with its file, and the graph with the device.
      let report = running.run.waitUntilStopped(timeout: .milliseconds(Int64(seconds * 1_000) + 30_000))
      #expect(report?.failure == nil && report != nil)
      told = running.events
    }
    let meter = LagMeter(noise, loudspeaker, longest: 5_000)
    try #require(meter.lags.count > meter.windows / 2, "\(meter.description)")
    // The server counts blocks in whole microseconds, so its clock is hundreds of ppm fast and wanders. The remaining drift shows only in
    // the age of what is played. Uncompensated, the microphone alone would change it by 4 ms between events.
    let ages = told.filter { $0.contains("\"event\":\"deviceClock\"") }.compactMap { line in
      line.firstMatch(of: #/"age":(-?[0-9.]+)/#).flatMap { Double($0.1) }
    }
    print("a microphone \(skew) ppm fast: ages of \(ages) ms, every 10 s; \(meter.description)")
    let settled = ages.dropFirst(2)
    try #require(settled.count > 1, "\(told)")
    #expect(settled.max()! - settled.min()! < 3, "\(ages)")
    // A stalled machine makes the audio jump and reports it; clock drift alone does not.
    let stood = told.contains { $0.contains("\"event\":\"late\"") || $0.contains("\"event\":\"underrun\"") }
    #expect(stood || !told.contains { $0.contains("\"event\":\"jump\"") })
  }
}
