import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceDevices

/// The devices of one test: each is a file of its name in the test's folder, which can be open once and takes a while to close. `gone` does not
/// exist, `slow` opens when it is let, and `silent` never runs. `fragile` runs and is lost when the test says so.
private final class Script: Sendable {
  /// The scripts by their folders: nodes find theirs by `path`.
  private static let all = Locked<[String: Script]>([:])

  let gate = Promise<Bool>()
  /// The device that was set before the node was restarted; nil if it was not.
  let requested = Locked<String?>(nil)
  /// The names of the devices that were opened, in order.
  let opened = Locked<[String]>([])
  /// The names of those that were closed, in order.
  let closed = Locked<[String]>([])
  /// The lines of the devices by their names.
  let lines = Locked<[String: PlaybackLine]>([:])
  private let inUse = Locked<Set<String>>([])

  static func register(_ folder: String) -> Script {
    let script = Script()
    all.withLock { $0[folder] = script }
    return script
  }

  static func find(_ folder: String) throws(NodeProblem) -> Script {
    guard let script = all.withLock({ $0[folder] }) else { throw NodeProblem("no script") }
    return script
  }

  func open(_ settings: DeviceSettings, for line: PlaybackLine) throws(NodeProblem) -> any AudioDevice {
    let name = settings.name.name
    if name == "gone" {
      throw NodeProblem(
        "no device \"gone\"", parameter: "device", cure: "use one of: alsa:first, alsa:second")
    }
    if name == "slow", gate.wait(.milliseconds(120_000)) == nil {
      throw NodeProblem("nobody opened the gate")
    }
    opened.withLock { $0.append(name) }
    guard inUse.withLock({ $0.insert(name).inserted }) else {
      throw NodeProblem("the device \"\(name)\" is in use")
    }
    lines.withLock { $0[name] = line }
    let device: any AudioDevice
    do throws(NodeProblem) { device = try make(name, settings, line) } catch {
      free(name)
      throw error
    }
    return ScriptedDevice { [self] in
      device.stop()
      // Closing a sound card takes its time.
      usleep(100_000)
      free(name)
      closed.withLock { $0.append(name) }
    }
  }

  /// Starts the clock of a device, or starts it again.
  static func run(_ line: PlaybackLine, epoch: Int = 1) {
    let now = Clock(.realtime).now
    line.publish(
      DeviceClock(epoch: epoch, position: 0, time: now, rate: Double(line.rate) / 1e9), isFirst: true,
      at: now)
  }

  private func free(_ name: String) { inUse.withLock { _ = $0.remove(name) } }

  private func make(_ name: String, _ settings: DeviceSettings, _ line: PlaybackLine) throws(NodeProblem)
    -> any AudioDevice
  {
    if name == "silent" { return ScriptedDevice {} }
    if name == "fragile" {
      Self.run(line)
      return ScriptedDevice {}
    }
    guard let file = DeviceName("file") else { throw NodeProblem("no files") }
    let place = DeviceSettings(
      name: file, path: "\(settings.path)/\(name).wav", interval: settings.interval, skew: settings.skew)
    return try AudioDevices.open(place, for: line)
  }
}

/// A device that is open already.
private final class ScriptedDevice: AudioDevice {
  private let close: @Sendable () -> Void

  init(_ close: @escaping @Sendable () -> Void) { self.close = close }

  func start() throws(NodeProblem) {}
  func stop() { close() }
}

/// `audio.play` with the scripted devices.
private struct ScriptedPlay: ~Copyable, Node {
  static var contract: NodeContract { AudioPlay.contract }
  private var node: AudioPlay

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let script = try Script.find(setup.parameters.string("path"))
    var values = setup.parameters
    if let requested = script.requested.withLock({ $0 }) { values["device"] = .string(requested) }
    var restarted = NodeSetup(
      name: setup.name, contract: setup.contract, parameters: values, inputs: setup.inputs,
      outputs: setup.outputs, pacing: setup.pacing, isVirtual: setup.isVirtual, waker: setup.waker)
    restarted.initial = setup.initial
    node = try AudioPlay(restarted) { (settings, line) throws(NodeProblem) in
      try script.open(settings, for: line)
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    try node.receive(message, &ports)
  }
  mutating func interrupted(_ ports: inout Ports) { node.interrupted(&ports) }
}

@Suite("audio.play: another device while the graph runs")
struct DeviceChangeTests {
  private static let rate = 8_000
  private static let frames = 160
  private let folder = TemporaryFolder()
  private let script: Script

  init() { script = Script.register(folder.path) }

  private func bench(_ device: String = "alsa:first") throws -> NodeBench {
    try NodeBench(
      ScriptedPlay.self,
      ["device": .string(device), "path": .string(folder.path), "latency": 200, "prebuffer": 0],
      inputs: ["in": .pcm(rate: Self.rate, channels: 1, sample: .f32, frames: Self.frames)],
      clock: .realtime)
  }

  /// A reply of so many packets, with its end.
  private func reply(_ generation: UInt32, packets: Int, to bench: NodeBench) {
    let samples = [Float](repeating: 0.25, count: Self.frames)
    let bytes = samples.flatMap { value in withUnsafeBytes(of: value) { Array($0) } }
    for index in 0..<packets {
      bench.push(
        CapturedPacket(
          bytes: bytes, timestamp: bench.now, position: Int64(index * Self.frames), duration: Self.frames,
          generation: generation, flags: index == packets - 1 ? .endOfUtterance : []))
    }
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

  /// True if anything was played to a device. Waits until that is closed: a file that is written cannot be read.
  private func sounds(_ name: String) throws -> Bool {
    let deadline = ContinuousClock.now + .seconds(120)
    var opened: NodeBench?
    while opened == nil {
      do {
        opened = try NodeBench(
          AudioRead.self, ["path": .string(folder.file("\(name).wav")), "sample": "f32"])
      } catch {
        guard ContinuousClock.now < deadline else { throw error }
        usleep(10_000)
      }
    }
    let bench = try #require(opened)
    try bench.finish()
    defer { #expect(bench.close() == []) }
    return bench.float().contains { $0 > 0.1 }
  }

  @Test("a reply continues on the other device, and every sample of it is counted", .timeLimit(.minutes(10)))
  func reply() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    bench.setGeneration(1)
    reply(1, packets: 100, to: bench)
    _ = try wait(bench, for: "replyAudible", seen: &seen)
    try bench.set("device", "alsa:second")
    #expect(try wait(bench, for: "deviceChanged", seen: &seen).string("device") == "alsa:second")
    if !seen.contains(where: { $0.name == "replyFinished" }) {
      _ = try wait(bench, for: "replyFinished", seen: &seen)
    }
    let finished = seen.filter { $0.name == "replyFinished" }
    #expect(finished.map { $0.number("samples") } == [Double(100 * Self.frames)])
    // Whatever the machine's speed, this one is played after the change.
    bench.setGeneration(2)
    reply(2, packets: 50, to: bench)
    #expect(
      try wait(bench, for: "replyFinished", seen: &seen).number("samples") == Double(50 * Self.frames))
    #expect(!seen.contains { ["deviceLost", "deviceBack", "error"].contains($0.name) }, "\(seen)")
    // The positions of the reference increase; what was late may be skipped.
    let packets = bench.packets("reference")
    #expect(packets.count > 100)
    #expect(
      zip(packets, packets.dropFirst()).allSatisfy { $0.position + Int64($0.duration) <= $1.position })
    #expect(bench.close() == [])
  }

  @Test(
    "the positions of the reference tell time across the change, which is marked",
    .timeLimit(.minutes(10)))
  func reference() throws {
    let bench = try bench()
    var packets: [CapturedPacket] = []
    func wait(for events: Int) throws -> Bool {
      let count = packets.count
      var changes = 0
      return try bench.wait(120) {
        packets += bench.packets("reference")
        changes += bench.events().count { $0.name == "deviceChanged" }
        return changes >= events && packets.count > count + 20
      }
    }
    #expect(try wait(for: 0))
    // In silence the other device continues behind the present one, up to a period later.
    for name in ["alsa:second", "alsa:third"] {
      try bench.set("device", .string(name))
      #expect(try wait(for: 1))
      #expect(try wait(for: 0))
    }
    for (last, next) in zip(packets, packets.dropFirst()) {
      let time = Double(next.timestamp - last.timestamp) * Double(Self.rate) / 1e9
      #expect(abs(Double(next.position - last.position) - time) <= 1, "\(last.position): \(time)")
    }
    #expect(packets.count { $0.flags.contains(.discontinuity) } >= 2)
    #expect(bench.close() == [])
  }

  @Test("the device is closed, and the other one plays", .timeLimit(.minutes(10)))
  func plays() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    bench.setGeneration(1)
    reply(1, packets: 50, to: bench)
    _ = try wait(bench, for: "replyFinished", seen: &seen)
    try bench.set("device", "alsa:second")
    _ = try wait(bench, for: "deviceChanged", seen: &seen)
    bench.setGeneration(2)
    reply(2, packets: 50, to: bench)
    _ = try wait(bench, for: "replyFinished", seen: &seen)
    #expect(bench.close() == [])
    #expect(try sounds("first"))
    #expect(try sounds("second"))
  }

  @Test("a device that is still being closed is opened once that is done", .timeLimit(.minutes(10)))
  func again() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    for name in ["alsa:second", "alsa:first", "alsa:second"] {
      try bench.set("device", .string(name))
      let event = try wait(bench, for: "deviceChanged", "error", seen: &seen)
      #expect(event.name == "deviceChanged" && event.string("device") == name, "\(event)")
    }
    #expect(bench.close() == [])
  }

  @Test("a device set again while it is being opened is not opened twice", .timeLimit(.minutes(10)))
  func twice() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    for name in ["alsa:slow", "alsa:second", "alsa:slow"] { try bench.set("device", .string(name)) }
    script.gate.fulfill(true)
    #expect(try wait(bench, for: "deviceChanged", "error", seen: &seen).string("device") == "alsa:slow")
    try bench.set("device", "alsa:second")
    #expect(try wait(bench, for: "deviceChanged", "error", seen: &seen).string("device") == "alsa:second")
    #expect(seen.allSatisfy { $0.name != "error" }, "\(seen)")
    let opened = script.opened.withLock { $0 }
    #expect(opened == ["first", "slow", "second"])
    #expect(bench.close() == [])
  }

  @Test("a device that cannot be opened is an event with the cure, and the present one continues")
  func refused() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    let texts = [
      "alsa:gone": "no device \"gone\"; use one of: alsa:first, alsa:second",
      "speaker":
        "unknown device \"speaker\"; use pulse, pulse:NAME, alsa, alsa:NAME or file; \"millrace devices\" lists the names",
      "null":
        "the device \"null\" runs on the graph's clock: it cannot be replaced, or replace another, while the graph runs; start the graph with the other device",
    ]
    for (name, text) in texts {
      try bench.set("device", .string(name))
      let event = try wait(bench, for: "error", seen: &seen)
      #expect(event.string("device") == name)
      #expect(event.string("text")?.hasSuffix(text) == true, "\(event)")
    }
    bench.setGeneration(1)
    reply(1, packets: 50, to: bench)
    #expect(
      try wait(bench, for: "replyFinished", seen: &seen).number("samples") == Double(50 * Self.frames))
    #expect(!seen.contains { ["deviceLost", "deviceChanged"].contains($0.name) })
    #expect(bench.close() == [])
    #expect(try sounds("first"))
  }

  @Test("while a device is being opened the present one plays; of several set meanwhile the last one counts")
  func slow() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    try bench.set("device", "alsa:slow")
    try bench.set("device", "alsa:gone")
    try bench.set("device", "alsa:second")
    bench.setGeneration(1)
    reply(1, packets: 5, to: bench)
    _ = try wait(bench, for: "replyFinished", seen: &seen)
    #expect(!seen.contains { $0.name == "deviceChanged" })
    script.gate.fulfill(true)
    #expect(try wait(bench, for: "deviceChanged", seen: &seen).string("device") == "alsa:second")
    #expect(seen.filter { ["deviceChanged", "error"].contains($0.name) }.count == 1, "\(seen)")
    #expect(bench.close() == [])
    #expect(try sounds("first"))
  }

  @Test(
    "a device that opens but does not run is an event, and the present one continues",
    .timeLimit(.minutes(10)))
  func silent() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    try bench.set("device", "alsa:silent")
    let event = try wait(bench, for: "error", seen: &seen)
    #expect(event.string("device") == "alsa:silent")
    #expect(
      event.string("text")
        == "the device was opened but does not run; check that it is connected and that no other program holds it, or set another device"
    )
    bench.setGeneration(1)
    reply(1, packets: 50, to: bench)
    #expect(
      try wait(bench, for: "replyFinished", seen: &seen).number("samples") == Double(50 * Self.frames))
    #expect(!seen.contains { ["deviceLost", "deviceBack", "deviceChanged"].contains($0.name) }, "\(seen)")
    #expect(bench.close() == [])
  }

  @Test(
    "a device that does not open is given up, the present one continues, and another can be set",
    .timeLimit(.minutes(10)))
  func endless() throws {
    let bench = try bench()
    var seen: [BenchEvent] = []
    try bench.set("device", "alsa:slow")
    let event = try wait(bench, for: "error", seen: &seen)
    #expect(event.string("device") == "alsa:slow")
    #expect(
      event.string("text")
        == "the device did not open within 10 s; check that it is connected and that its server answers, or set another device"
    )
    try bench.set("device", "alsa:second")
    #expect(try wait(bench, for: "deviceChanged", "error", seen: &seen).string("device") == "alsa:second")
    // It opens after all, and is closed.
    script.gate.fulfill(true)
    #expect(try bench.wait(120) { script.closed.withLock { $0.contains("slow") } })
    #expect(!seen.contains { $0.name == "deviceLost" }, "\(seen)")
    #expect(bench.close() == [])
  }

  @Test(
    "a lost device can be replaced, which ends its loss; what it does afterwards is no event",
    .timeLimit(.minutes(10)))
  func lost() throws {
    let bench = try bench("alsa:fragile")
    var seen: [BenchEvent] = []
    #expect(try bench.wait(120) { !bench.packets("reference").isEmpty })
    let found = script.lines.withLock { $0["fragile"] }
    let line = try #require(found)
    line.lose(at: Clock(.realtime).now)
    _ = try wait(bench, for: "deviceLost", seen: &seen)
    // With nothing else to wait for, the node still finds out that this one does not run.
    try bench.set("device", "alsa:silent")
    #expect(try wait(bench, for: "error", seen: &seen).string("device") == "alsa:silent")
    try bench.set("device", "alsa:second")
    #expect(try wait(bench, for: "deviceChanged", seen: &seen).string("device") == "alsa:second")
    Script.run(line, epoch: 2)
    bench.setGeneration(1)
    reply(1, packets: 50, to: bench)
    #expect(
      try wait(bench, for: "replyFinished", seen: &seen).number("samples") == Double(50 * Self.frames))
    let names = ["deviceLost", "deviceBack", "deviceChanged", "error"]
    #expect(
      seen.map(\.name).filter { names.contains($0) }
        == ["deviceLost", "error", "deviceBack", "deviceChanged"])
    #expect(bench.close() == [])
  }

  @Test(
    "a restarted node whose last device is refused plays to its graph's own, and says why",
    .timeLimit(.minutes(10)),
    arguments: [
      ("alsa:first", "null"), ("alsa:first", "speaker"), ("alsa:first", "alsa:gone"),
      ("null", "alsa:second"),
    ])
  func restartedRefused(device: String, requested: String) throws {
    script.requested.withLock { $0 = requested }
    let bench = try bench(device)
    var seen: [BenchEvent] = []
    #expect(try wait(bench, for: "error", seen: &seen).string("device") == requested)
    bench.setGeneration(1)
    reply(1, packets: 50, to: bench)
    #expect(
      try wait(bench, for: "replyFinished", seen: &seen).number("samples") == Double(50 * Self.frames))
    let names = ["error", "deviceChanged", "deviceLost"]
    #expect(seen.map(\.name).filter { names.contains($0) } == ["error"])
    let opened = script.opened.withLock { $0 }
    #expect(opened == (device == "null" ? [] : ["first"]))
    #expect(bench.close() == [])
  }

  @Test("a restarted node plays to the device that was set last", .timeLimit(.minutes(10)))
  func restarted() throws {
    script.requested.withLock { $0 = "alsa:second" }
    let bench = try bench()
    var seen: [BenchEvent] = []
    bench.setGeneration(1)
    reply(1, packets: 50, to: bench)
    _ = try wait(bench, for: "replyFinished", seen: &seen)
    // It is the present one, and can be replaced.
    try bench.set("device", "alsa:second")
    try bench.set("device", "alsa:first")
    #expect(try wait(bench, for: "deviceChanged", "error", seen: &seen).string("device") == "alsa:first")
    let opened = script.opened.withLock { $0 }
    #expect(opened == ["second", "first"])
    #expect(bench.close() == [])
    #expect(try sounds("second"))
  }

  @Test("the device null cannot be replaced")
  func null() throws {
    let bench = try NodeBench(
      AudioPlay.self, inputs: ["in": .pcm(rate: Self.rate, channels: 1, sample: .f32, frames: Self.frames)])
    try bench.set("device", "pulse")
    try bench.run()
    let event = try #require(bench.events().first { $0.name == "error" })
    #expect(event.string("text")?.contains("the device \"null\" runs on the graph's clock") == true)
    #expect(bench.close() == [])
  }
}
