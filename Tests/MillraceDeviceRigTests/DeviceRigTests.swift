import Foundation
import Glibc
import Millrace
import MillraceDevices
import Testing

/// Real streams on a real sound server. `make test-devices` runs these; elsewhere they report themselves skipped.
@Suite(
  "devices of a sound server", .serialized,
  .enabled(
    if: PulseServer.isInstalled && getenv("MILLRACE_DEVICES") != nil,
    "make test-devices installs a sound server and runs these"),
  .timeLimit(.minutes(10)))
struct DeviceRigTests {
  /// Path of a file beside the package's manifest.
  private static func graph(_ name: String) -> String {
    var folder = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { folder.deleteLastPathComponent() }
    return folder.appendingPathComponent("graphs/\(name).json").path
  }

  /// A shipped graph that runs, and what it told.
  private struct Running {
    let run: GraphRun
    let log: String

    init(_ name: String, _ values: [String: String] = [:], in folder: String) throws {
      log = folder + "/events.jsonl"
      let plan = try Graph.load(
        path: DeviceRigTests.graph(name),
        settings: GraphSettings(set: values.merging(["log": log]) { $1 }, clock: .realtime),
        catalogue: .standard)
      run = try Engine(catalogue: .standard, clock: .realtime).start(plan)
    }

    /// What was told so far, as lines of JSON.
    var events: [String] {
      ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    /// Waits for an event of a node; false when it did not come in time.
    func wait(for name: String, of node: String, seconds: Double) -> Bool {
      let deadline = Date(timeIntervalSinceNow: seconds)
      while Date() < deadline {
        if events.contains(where: {
          $0.contains("\"event\":\"\(name)\"") && $0.contains("\"node\":\"\(node)\"")
        }) {
          return true
        }
        usleep(20_000)
      }
      return false
    }

    /// Ends it.
    func end() throws -> RunReport {
      run.stop()
      return try #require(run.waitUntilStopped(timeout: .milliseconds(10_000)))
    }
  }

  @Test(
    "mouth to ear: the microphone reaches the loudspeaker, soon, and no later at the end than at the beginning"
  )
  func mouthToEar() throws {
    let server = try PulseServer()
    let running = try Running("device-loop", in: server.folder)
    let (microphone, loudspeaker) = try server.record(playing: LagMeter.noise(seconds: 12), after: 2)
    let report = try running.end()
    #expect(report.failure == nil && report.leakedBlocks == 0)
    let meter = LagMeter(microphone, loudspeaker)
    try #require(meter.lags.count > 100, "\(meter.lags.count) windows, \(meter.misses) misses")
    print(
      "mouth to ear: median \(meter.median) ms, 5 % \(meter.quantile(0.05)), 95 % \(meter.quantile(0.95)), "
        + "\(meter.steps) steps, \(meter.misses) of \(meter.lags.count + meter.misses) windows missed")
    // No bound on time here, but delay may not pile up: a tenth of a second would be five times what it takes.
    #expect(meter.median < 100)
    let begin: Double = meter.lags.prefix(50).reduce(0, +) / 50
    let end: Double = meter.lags.suffix(50).reduce(0, +) / 50
    #expect(end < begin + 20)
  }

  @Test("a server that goes away and comes back is a gap, told on both sides, and the sound goes on")
  func restart() throws {
    let server = try PulseServer()
    let running = try Running("device-loop", in: server.folder)
    usleep(1_000_000)
    server.stop()
    #expect(running.wait(for: "deviceLost", of: "mic", seconds: 10))
    #expect(running.wait(for: "deviceLost", of: "speaker", seconds: 10))
    usleep(300_000)
    try server.start()
    #expect(running.wait(for: "deviceBack", of: "mic", seconds: 20))
    #expect(running.wait(for: "deviceBack", of: "speaker", seconds: 20))
    let (microphone, loudspeaker) = try server.record(playing: LagMeter.noise(seconds: 6), after: 2)
    #expect(try running.end().failure == nil)
    let meter = LagMeter(microphone, loudspeaker)
    try #require(meter.lags.count > 30)
    #expect(meter.median < 100, "\(meter.median)")
  }

  @Test("a named device that is taken away is told and comes back with its device")
  func unplug() throws {
    let server = try PulseServer()
    try server.plug()
    let running = try Running("device-loop", ["loudspeaker": "pulse:rig_plug"], in: server.folder)
    usleep(500_000)
    try server.unplug()
    #expect(running.wait(for: "deviceLost", of: "speaker", seconds: 10))
    usleep(300_000)
    try server.plug()
    #expect(running.wait(for: "deviceBack", of: "speaker", seconds: 20))
    #expect(try running.end().failure == nil)
  }

  @Test("a device that is not there refuses the graph with the names of those that are")
  func unknown() throws {
    let server = try PulseServer()
    #expect(throws: (any Error).self) {
      _ = try Running("device-loop", ["microphone": "pulse:nowhere"], in: server.folder)
    }
    do {
      _ = try Running("device-loop", ["microphone": "pulse:nowhere"], in: server.folder)
    } catch {
      #expect("\(error)".contains("no device \"nowhere\""))
      #expect("\(error)".contains("\"pulse:rig_mic\""), "\(error)")
    }
  }

  @Test("the devices of the server are listed, the default ones marked")
  func list() throws {
    let server = try PulseServer()
    let devices = AudioDeviceList.pulse()
    withExtendedLifetime(server) {}
    #expect(devices.first { $0.device == "pulse:rig_mic" && $0.records }?.isDefault == true)
    #expect(devices.first { $0.device == "pulse:rig_speaker" && $0.plays }?.isDefault == true)
    #expect(devices.first { $0.device == "pulse:rig_hub" }?.channels == 2)
  }

  @Test("the call with oneself runs: the microphone comes back through Opus, and nothing fails")
  func duplex() throws {
    let server = try PulseServer()
    let running = try Running("duplex-loop", ["engine": "energy"], in: server.folder)
    let (_, loudspeaker) = try server.record(playing: LagMeter.noise(seconds: 4), after: 2)
    let report = try running.end()
    #expect(report.failure == nil && report.leakedBlocks == 0)
    #expect(loudspeaker.contains { abs($0) > 0.01 })
  }

  @Test("ALSA records and plays through its PulseAudio plugin", .enabled(if: Self.hasPlugin))
  func alsa() throws {
    let server = try PulseServer()
    let running = try Running(
      "device-loop",
      ["microphone": "alsa:pulse", "loudspeaker": "alsa:pulse", "latency": "30", "prebuffer": "10"],
      in: server.folder)
    let (microphone, loudspeaker) = try server.record(playing: LagMeter.noise(seconds: 6), after: 2)
    #expect(try running.end().failure == nil)
    let meter = LagMeter(microphone, loudspeaker, longest: 500)
    print("ALSA: \(meter.lags.isEmpty ? -1 : meter.median) ms, \(meter.misses) windows missed")
    #expect(meter.lags.count > 30)
  }

  static let hasPlugin = FileManager.default.fileExists(
    atPath: "/usr/lib/x86_64-linux-gnu/alsa-lib/libasound_module_pcm_pulse.so")
}
