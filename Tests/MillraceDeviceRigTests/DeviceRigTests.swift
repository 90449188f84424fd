import Foundation
import Glibc
import Millrace
import MillraceAudio
import MillraceDevices
import Testing

/// Real streams on a real sound server. Run by `make test-devices`; skipped elsewhere.
@Suite(
  "devices of a sound server", .serialized,
  .enabled(
    if: PulseServer.isInstalled && getenv("MILLRACE_DEVICES") != nil,
    "make test-devices installs a sound server and runs these"),
  .timeLimit(.minutes(30)))
struct DeviceRigTests {
  @Test(
    "mouth to ear: the microphone reaches the loudspeaker with low delay, and the delay does not grow"
  )
  func mouthToEar() throws {
    let server = try PulseServer()
    let running = try Running("device-loop", in: server.folder)
    let lags = try lags(server, atLeast: 150, seconds: 12)
    let report = try running.end()
    #expect(report.failure == nil && report.leakedBlocks == 0)
    // Delay must not accumulate. A busy machine delays single windows, not the minimum of many.
    let (begin, end) = (lags.prefix(50).min() ?? 0, lags.suffix(50).min() ?? 0)
    #expect(begin < 100, "\(lags)")
    #expect(end < begin + 20, "\(lags)")
  }

  /// Plays noise into the microphone and finds it at the loudspeaker until enough windows of 40 ms have matched; at most twelve recordings,
  /// because a busy machine spoils many.
  private func lags(_ server: PulseServer, atLeast count: Int, seconds: Double, longest: Double = 250) throws
    -> [Double]
  {
    var lags: [Double] = []
    for _ in 0..<12 where lags.count < count {
      let (microphone, loudspeaker) = try server.record(playing: LagMeter.noise(seconds: seconds), after: 2)
      let meter = LagMeter(microphone, loudspeaker, longest: longest)
      print("microphone to loudspeaker: \(meter.description)")
      lags += meter.lags
    }
    try #require(lags.count >= count)
    return lags
  }

  /// Plays noise into the microphone until it is heard from the loudspeaker; false if it stays silent for twelve recordings.
  private func isHeard(_ server: PulseServer, seconds: Double) throws -> Bool {
    for _ in 0..<12 {
      let sound = try server.record(playing: LagMeter.noise(seconds: seconds), after: 0.5).loudspeaker
      if sound.contains(where: { abs($0) > 0.01 }) { return true }
    }
    return false
  }

  @Test("a server restart is a gap, reported on both sides, and audio continues")
  func restart() throws {
    let server = try PulseServer()
    let running = try Running("device-loop", in: server.folder)
    #expect(try isHeard(server, seconds: 1), "nothing was heard before the server went away")
    server.stop()
    #expect(running.wait(for: "deviceLost", of: "mic", seconds: 60))
    #expect(running.wait(for: "deviceLost", of: "speaker", seconds: 60))
    try server.start()
    #expect(running.wait(for: "deviceBack", of: "mic", seconds: 60))
    #expect(running.wait(for: "deviceBack", of: "speaker", seconds: 60))
    let lags = try lags(server, atLeast: 40, seconds: 6)
    #expect(try running.end().failure == nil)
    #expect(lags.min() ?? .infinity < 100, "\(lags)")
  }

  @Test("losing a named device is reported, and the stream recovers with the device")
  func unplug() throws {
    let server = try PulseServer()
    try server.plug()
    let running = try Running("device-loop", ["loudspeaker": "pulse:rig_plug"], in: server.folder)
    try server.unplug()
    #expect(running.wait(for: "deviceLost", of: "speaker", seconds: 60))
    try server.plug()
    #expect(running.wait(for: "deviceBack", of: "speaker", seconds: 60))
    #expect(try running.end().failure == nil)
  }

  @Test("an unknown device is refused with the names of the available ones")
  func unknown() throws {
    let server = try PulseServer()
    let refusal = #expect(throws: (any Error).self) {
      _ = try Running("device-loop", ["microphone": "pulse:nowhere"], in: server.folder)
    }
    let message = refusal.map { "\($0)" } ?? ""
    #expect(message.contains("no capture device \"nowhere\""), "\(message)")
    #expect(message.contains("\"pulse:rig_mic\""), "\(message)")
  }

  @Test("the server's devices are listed, with the defaults marked")
  func list() throws {
    let server = try PulseServer()
    let devices = AudioDeviceList.pulse()
    withExtendedLifetime(server) {}
    #expect(devices.first { $0.device == "pulse:rig_mic" && $0.records }?.isDefault == true)
    #expect(devices.first { $0.device == "pulse:rig_speaker" && $0.plays }?.isDefault == true)
    #expect(devices.first { $0.device == "pulse:rig_hub" }?.channels == 2)
  }

  @Test(
    "the program lists the server's devices as a table and as JSON", .enabled(if: RigProgram.isBuilt))
  func program() throws {
    let server = try PulseServer()
    let json = try server.run("devices", "--json")
    let listed = try #require(
      try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]])
    let microphone = try #require(listed.first { $0["device"] as? String == "pulse:rig_mic" })
    #expect(microphone["records"] as? Bool == true && microphone["plays"] as? Bool == false)
    #expect(microphone["default"] as? Bool == true)
    #expect(microphone["rate"] as? Int == PulseServer.rate && microphone["channels"] as? Int == 1)
    let hub = try #require(listed.first { $0["device"] as? String == "pulse:rig_hub" })
    #expect(hub["plays"] as? Bool == true && hub["default"] as? Bool == false && hub["channels"] as? Int == 2)
    let table = try server.run("devices").split(separator: "\n")
    #expect(table.contains { $0.hasPrefix("* pulse:rig_mic ") && $0.hasSuffix("(48000 Hz, 1 ch)") })
    #expect(table.contains { $0.hasPrefix("* pulse:rig_speaker ") })
  }

  @Test("the loopback call runs: the microphone comes back through Opus, and nothing fails")
  func duplex() throws {
    let server = try PulseServer()
    let running = try Running("duplex-loop", ["engine": "energy"], in: server.folder)
    let isHeard = try isHeard(server, seconds: 4)
    let report = try running.end()
    #expect(report.failure == nil && report.leakedBlocks == 0)
    #expect(isHeard)
  }

  @Test("ALSA records and plays through its PulseAudio plugin", .enabled(if: Self.hasPlugin))
  func alsa() throws {
    let server = try PulseServer()
    let running = try Running(
      "device-loop",
      ["microphone": "alsa:pulse", "loudspeaker": "alsa:pulse", "latency": "30", "prebuffer": "10"],
      in: server.folder)
    // Noise correlates with itself at one lag only, so a single match proves the path. The plugin's thread is not real-time and loses many
    // windows on a busy machine.
    _ = try lags(server, atLeast: 10, seconds: 8, longest: 500)
    #expect(try running.end().failure == nil)
  }

  static let hasPlugin = FileManager.default.fileExists(
    atPath: "/usr/lib/x86_64-linux-gnu/alsa-lib/libasound_module_pcm_pulse.so")
}
