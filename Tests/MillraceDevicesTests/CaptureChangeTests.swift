import Glibc
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceDevices

/// `audio.capture` whose devices are files of their names in a folder. `pulse:gone` does not exist.
private struct ScriptedCapture: ~Copyable, Node {
  static var contract: NodeContract { AudioCapture.contract }
  private var node: AudioCapture

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    node = try AudioCapture(setup) { (settings, line, shape) throws(NodeProblem) in
      guard settings.name.name != "gone", let file = DeviceName("file") else {
        throw NodeProblem("no device \"gone\"", parameter: "device", cure: "use pulse:first or pulse:second")
      }
      let place = DeviceSettings(
        name: file, path: "\(settings.path)/\(settings.name.name).wav", interval: settings.interval,
        skew: settings.skew)
      return try AudioDevices.open(place, for: line, shape)
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

  /// A device that delivers this value for some seconds.
  private func device(_ name: String, value: Int16, seconds: Int) throws {
    var writer = try WAVWriter(
      path: folder.file("\(name).wav"), format: WAVFormat(sampleRate: Self.rate, channels: 1, encoding: .s16))
    let samples = [Int16](repeating: value, count: seconds * Self.rate)
    try writer.write(samples.span)
    try writer.finish()
  }

  private func bench() throws -> NodeBench {
    try NodeBench(
      ScriptedCapture.self,
      [
        "device": "pulse:first", "path": .string(folder.path), "rate": .integer(Self.rate), "sample": "s16",
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
    try bench.set("device", "pulse:second")
    #expect(try wait { packets.count { $0.int16.first == -1_000 } > 20 })
    #expect(events.filter { $0.name == "deviceChanged" }.map { $0.string("device") } == ["pulse:second"])
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
    for name in ["pulse:gone", "microphone", "null"] {
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
    #expect(text.hasSuffix("no device \"gone\"; use pulse:first or pulse:second"))
    #expect(events.last?.string("text")?.contains("runs on the graph's clock") == true)
    let position = bench.packets().last?.position ?? -1
    #expect(try bench.wait(120) { bench.packets().contains { $0.position > position } })
    #expect(bench.close() == [])
  }
}
