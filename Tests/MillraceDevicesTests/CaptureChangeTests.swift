import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceDevices

/// The devices of one test: each is a file of its name in the test's folder. `gone` does not exist, `slow` opens when it is let, and `silent`
/// delivers nothing. `fragile` delivers when the test says so, and `returned` was lost and came back before it was taken.
private final class CaptureScript: Sendable {
  /// The scripts by their folders: nodes find theirs by `path`.
  private static let all = Locked<[String: CaptureScript]>([:])

  let gate = Promise<Bool>()
  /// The device that was set before the node was restarted; nil if it was not.
  let requested = Locked<String?>(nil)
  /// The lines of the devices by their names.
  let lines = Locked<[String: CaptureLine]>([:])

  static func register(_ folder: String) -> CaptureScript {
    let script = CaptureScript()
    all.withLock { $0[folder] = script }
    return script
  }

  static func find(_ folder: String) throws(NodeProblem) -> CaptureScript {
    guard let script = all.withLock({ $0[folder] }) else { throw NodeProblem("no script") }
    return script
  }

  func open(_ settings: DeviceSettings, for line: CaptureLine, _ shape: CaptureFormat) throws(NodeProblem)
    -> any AudioDevice
  {
    let name = settings.name.name
    guard name != "gone", let file = DeviceName("file") else {
      throw NodeProblem("no device \"gone\"", parameter: "device", cure: "use alsa:first or alsa:second")
    }
    if name == "slow", gate.wait(.milliseconds(120_000)) == nil {
      throw NodeProblem("nobody opened the gate")
    }
    lines.withLock { $0[name] = line }
    switch name {
    case "silent", "fragile": return SilentDevice()
    case "doomed":
      Self.deliver(line)
      line.lose(at: Clock(.realtime).now)
      return SilentDevice()
    case "returned":
      Self.deliver(line)
      line.lose(at: Clock(.realtime).now)
      Self.deliver(line)
      return SilentDevice()
    default:
      let place = DeviceSettings(
        name: file, path: "\(settings.path)/\(name).wav", interval: settings.interval, skew: settings.skew)
      return try AudioDevices.open(place, for: line, shape)
    }
  }

  /// Delivers a packet of silence that ends now.
  static func deliver(_ line: CaptureLine) {
    line.arrive(line.frames, at: Clock(.realtime).now)
    line.take(nil, frames: line.frames)
  }
}

/// A device that does nothing by itself.
private final class SilentDevice: AudioDevice {
  func start() throws(NodeProblem) {}
  func stop() {}
}

/// `audio.capture` with the scripted devices.
private struct ScriptedCapture: ~Copyable, Node {
  static var contract: NodeContract { AudioCapture.contract }
  private var node: AudioCapture

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let script = try CaptureScript.find(setup.parameters.string("path"))
    var values = setup.parameters
    if let requested = script.requested.withLock({ $0 }) { values["device"] = .string(requested) }
    var restarted = NodeSetup(
      name: setup.name, contract: setup.contract, parameters: values, inputs: setup.inputs,
      outputs: setup.outputs, pacing: setup.pacing, isVirtual: setup.isVirtual, waker: setup.waker)
    restarted.initial = setup.initial
    node = try AudioCapture(restarted) { (settings, line, shape) throws(NodeProblem) in
      try script.open(settings, for: line, shape)
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    try node.receive(message, &ports)
  }
}

@Suite("audio.capture: another device while the graph runs")
struct CaptureChangeTests {
  private static let rate = 8_000
  private let folder = TemporaryFolder()
  private let script: CaptureScript

  init() { script = CaptureScript.register(folder.path) }

  /// A device that delivers this value for some seconds.
  private func device(_ name: String, value: Int16, seconds: Int) throws {
    var writer = try WAVWriter(
      path: folder.file("\(name).wav"), format: WAVFormat(sampleRate: Self.rate, channels: 1, encoding: .s16))
    let samples = [Int16](repeating: value, count: seconds * Self.rate)
    try writer.write(samples.span)
    try writer.finish()
  }

  private func bench(_ device: String = "alsa:first") throws -> NodeBench {
    try NodeBench(
      ScriptedCapture.self,
      [
        "device": .string(device), "path": .string(folder.path), "rate": .integer(Self.rate), "sample": "s16",
      ],
      clock: .realtime)
  }

  @Test("recording continues on the other device, and neither positions nor times decrease")
  func continues() throws {
    try device("first", value: 1_000, seconds: 240)
    try device("second", value: -1_000, seconds: 240)
    let bench = try bench()
    var packets: [CapturedPacket] = []
    var events: [BenchEvent] = []
    func wait(until condition: () -> Bool) throws -> Bool {
      try bench.wait(120) {
        packets += bench.packets()
        events += bench.events()
        return condition()
      }
    }
    #expect(try wait { packets.count > 20 })
    try bench.set("device", "alsa:second")
    #expect(try wait { packets.count { $0.int16.first == -1_000 } > 20 })
    #expect(events.filter { $0.name == "deviceChanged" }.map { $0.string("device") } == ["alsa:second"])
    #expect(!events.contains { ["deviceLost", "deviceBack", "error"].contains($0.name) }, "\(events)")
    let change = try #require(packets.firstIndex { $0.int16.first == -1_000 })
    #expect(packets.prefix(change).allSatisfy { $0.int16.allSatisfy { $0 == 1_000 } })
    #expect(packets.dropFirst(change).allSatisfy { $0.int16.allSatisfy { $0 == -1_000 } })
    #expect(change > 0 && packets[change].flags.contains(.discontinuity))
    #expect(
      zip(packets, packets.dropFirst()).allSatisfy { $0.position + Int64($0.duration) <= $1.position })
    // Positions tell time across the change, to a sample.
    let (last, first) = (packets[max(1, change) - 1], packets[change])
    #expect(first.timestamp > last.timestamp)
    let time = Double(first.timestamp - last.timestamp) * Double(Self.rate) / 1e9
    #expect(abs(Double(first.position - last.position) - time) <= 1, "\(time)")
    #expect(bench.close() == [])
  }

  @Test("a device that cannot be opened is an event with the cure, and the present one continues")
  func refused() throws {
    try device("first", value: 1_000, seconds: 240)
    let bench = try bench()
    var events: [BenchEvent] = []
    for name in ["alsa:gone", "microphone", "null"] {
      try bench.set("device", .string(name))
      let count = events.count
      #expect(
        try bench.wait(120) {
          events += bench.events().filter { $0.name == "error" }
          return events.count > count
        })
      #expect(events.last?.string("device") == name)
    }
    #expect(events.count == 3)
    let text = try #require(events.first?.string("text"))
    #expect(text.hasSuffix("no device \"gone\"; use alsa:first or alsa:second"))
    #expect(events.last?.string("text")?.contains("runs on the graph's clock") == true)
    let position = bench.packets().last?.position ?? -1
    #expect(try bench.wait(120) { bench.packets().contains { $0.position > position } })
    #expect(bench.close() == [])
  }

  /// Waits for one of these events; what else was posted until then is kept in `seen`.
  private func wait(_ bench: NodeBench, for names: String..., seen: inout [BenchEvent]) throws -> BenchEvent {
    var found: BenchEvent?
    _ = try bench.wait(120) {
      let events = bench.events()
      seen += events
      found = events.first { names.contains($0.name) }
      return found != nil
    }
    return try #require(found, "none of \(names): \(seen)")
  }

  @Test(
    "a device that opens but does not run is an event, and the present one continues",
    .timeLimit(.minutes(10)))
  func silent() throws {
    try device("first", value: 1_000, seconds: 240)
    let bench = try bench()
    var seen: [BenchEvent] = []
    try bench.set("device", "alsa:silent")
    let event = try wait(bench, for: "error", seen: &seen)
    #expect(event.string("device") == "alsa:silent")
    #expect(event.string("text")?.hasPrefix("the device was opened but does not run; ") == true, "\(event)")
    let position = bench.packets().last?.position ?? -1
    #expect(try bench.wait(120) { bench.packets().contains { $0.position > position } })
    #expect(bench.close() == [])
  }

  @Test(
    "a restarted node whose last device is refused records from its graph's own, and says why",
    .timeLimit(.minutes(10)), arguments: ["alsa:gone", "null", "microphone"])
  func restartedRefused(requested: String) throws {
    try device("first", value: 1_000, seconds: 240)
    script.requested.withLock { $0 = requested }
    let bench = try bench()
    var seen: [BenchEvent] = []
    #expect(try wait(bench, for: "error", seen: &seen).string("device") == requested)
    #expect(try bench.wait(120) { bench.packets().contains { $0.int16.first == 1_000 } })
    #expect(bench.close() == [])
  }

  @Test("a restarted node of a graph without a device is silent, and says that it cannot be replaced")
  func restartedNull() throws {
    script.requested.withLock { $0 = "alsa:first" }
    let bench = try bench("null")
    var seen: [BenchEvent] = []
    #expect(try wait(bench, for: "error", seen: &seen).string("device") == "alsa:first")
    #expect(try bench.wait(120) { !bench.packets().isEmpty })
    #expect(bench.close() == [])
  }

  @Test("what happened to a device before it was taken is no event")
  func returned() throws {
    try device("first", value: 1_000, seconds: 240)
    let bench = try bench()
    var seen: [BenchEvent] = []
    try bench.set("device", "alsa:returned")
    #expect(try wait(bench, for: "deviceChanged", "error", seen: &seen).name == "deviceChanged")
    // The node has read the events of this device by now.
    #expect(!seen.contains { ["deviceLost", "deviceBack"].contains($0.name) }, "\(seen)")
    #expect(bench.close() == [])
  }

  @Test(
    "a device that was lost before it was taken is lost after the change", .timeLimit(.minutes(10)))
  func lostBefore() throws {
    try device("first", value: 1_000, seconds: 240)
    let bench = try bench()
    var seen: [BenchEvent] = []
    try bench.set("device", "alsa:doomed")
    _ = try wait(bench, for: "deviceLost", seen: &seen)
    let names = ["deviceLost", "deviceBack", "deviceChanged", "error"]
    #expect(seen.map(\.name).filter { names.contains($0) } == ["deviceChanged", "deviceLost"], "\(seen)")
    #expect(bench.close() == [])
  }

  @Test(
    "a lost device can be replaced, which ends its loss; what it does afterwards is no event",
    .timeLimit(.minutes(10)))
  func lost() throws {
    try device("second", value: -1_000, seconds: 240)
    let bench = try bench("alsa:fragile")
    var seen: [BenchEvent] = []
    let found = script.lines.withLock { $0["fragile"] }
    let line = try #require(found)
    // Packets of before the first call are discarded.
    #expect(
      try bench.wait(120) {
        CaptureScript.deliver(line)
        return !bench.packets().isEmpty
      })
    line.lose(at: Clock(.realtime).now)
    _ = try wait(bench, for: "deviceLost", seen: &seen)
    // With nothing else to wait for, the node still finds out that this one does not run.
    try bench.set("device", "alsa:silent")
    #expect(try wait(bench, for: "error", seen: &seen).string("device") == "alsa:silent")
    try bench.set("device", "alsa:second")
    #expect(try wait(bench, for: "deviceChanged", seen: &seen).string("device") == "alsa:second")
    CaptureScript.deliver(line)
    #expect(try bench.wait(120) { bench.packets().contains { $0.int16.first == -1_000 } })
    seen += bench.events()
    let names = ["deviceLost", "deviceBack", "deviceChanged", "error"]
    #expect(
      seen.map(\.name).filter { names.contains($0) }
        == ["deviceLost", "error", "deviceBack", "deviceChanged"])
    #expect(bench.close() == [])
  }

  @Test(
    "a device whose file ends while another one is being opened is replaced by it",
    .timeLimit(.minutes(10)))
  func ended() throws {
    try device("first", value: 1_000, seconds: 1)
    try device("slow", value: -1_000, seconds: 240)
    let bench = try bench()
    try bench.set("device", "alsa:slow")
    let found = script.lines.withLock { $0["first"] }
    let line = try #require(found)
    #expect(try bench.wait(120) { line.isOver })
    try bench.run()
    #expect(!bench.hasEnded)
    script.gate.fulfill(true)
    #expect(try bench.wait(120) { bench.packets().contains { $0.int16.first == -1_000 } })
    let events = bench.events()
    #expect(events.contains { $0.name == "deviceChanged" }, "\(events)")
    #expect(!events.contains { ["deviceLost", "deviceBack", "error"].contains($0.name) }, "\(events)")
    #expect(bench.close() == [])
  }
}
