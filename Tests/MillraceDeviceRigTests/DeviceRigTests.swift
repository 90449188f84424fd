import Foundation
import Glibc
import Millrace
import MillraceAudio
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
    try #require(meter.lags.count > 100, "\(meter.words)")
    print("mouth to ear: \(meter.words)")
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
    let before = try server.record(playing: LagMeter.noise(seconds: 1), after: 0.5).loudspeaker
    #expect(before.contains { abs($0) > 0.01 }, "nothing was heard before the server went away")
    server.stop()
    #expect(running.wait(for: "deviceLost", of: "mic", seconds: 10))
    #expect(running.wait(for: "deviceLost", of: "speaker", seconds: 10))
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
    try server.unplug()
    #expect(running.wait(for: "deviceLost", of: "speaker", seconds: 10))
    try server.plug()
    #expect(running.wait(for: "deviceBack", of: "speaker", seconds: 20))
    #expect(try running.end().failure == nil)
  }

  @Test("a device that is not there refuses the graph with the names of those that are")
  func unknown() throws {
    let server = try PulseServer()
    let refusal = #expect(throws: (any Error).self) {
      _ = try Running("device-loop", ["microphone": "pulse:nowhere"], in: server.folder)
    }
    let words = refusal.map { "\($0)" } ?? ""
    #expect(words.contains("no device \"nowhere\""), "\(words)")
    #expect(words.contains("\"pulse:rig_mic\""), "\(words)")
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

  @Test(
    "the program lists the devices of the server, as a table and as JSON", .enabled(if: RigProgram.isBuilt))
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
    let (microphone, loudspeaker) = try server.record(playing: LagMeter.noise(seconds: 8), after: 2)
    #expect(try running.end().failure == nil)
    let meter = LagMeter(microphone, loudspeaker, longest: 500)
    print("ALSA: \(meter.words)")
    // Noise resembles itself at one lag only, so that each of them proves the way. The plugin's own thread is an ordinary one:
    // on a busy machine it loses many.
    #expect(meter.lags.count >= 10, "\(meter.words)")
  }

  static let hasPlugin = FileManager.default.fileExists(
    atPath: "/usr/lib/x86_64-linux-gnu/alsa-lib/libasound_module_pcm_pulse.so")
}
