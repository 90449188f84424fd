import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceRTCSound
import Synchronization
import Testing

@testable import MillraceRTCNodes
@testable import MillraceTesting

/// What a test and a node that has nothing but `RTCPorts` share. On the thread of the test.
final class PortsProbe: @unchecked Sendable {
  @TaskLocal static var current: PortsProbe?

  /// Made by the node.
  var exchange: RTCExchange!

  func bench(_ parameters: [String: ParameterValue] = [:], outputLimit: Int = 64) throws -> NodeBench {
    try Self.$current.withValue(self) {
      try NodeBench(PortsNode.self, parameters, outputs: ["audio", "events"], outputLimit: outputLimit)
    }
  }

  /// Of a node that sends packets of 20 ms as Opus.
  func sendingBench() throws -> NodeBench {
    let bench = try Self.$current.withValue(self) {
      try NodeBench(SendingPortsNode.self, inputs: ["audio": nodeSound], outputs: ["events"])
    }
    exchange.soundCodec.store(SoundCodec.opus.packed, ordering: .releasing)
    exchange.takers.store(1, ordering: .releasing)
    return bench
  }
}

/// A node whose call is the test.
struct PortsNode: ~Copyable, Node {
  static let contract = NodeContract(
    "test.ports", "plays sound", outputs: [RTCPortContracts.audioOut], parameters: RTCParameters.session,
    events: DialogEvent.contracts, drive: .itself,
    resolve: { resolution in
      resolution.pacing = .live
      resolution.outputs["audio"] = .pcm(rate: 48_000, channels: 1, sample: .f32, frames: 480, burst: 0)
    })

  private var session: RTCPorts

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let probe = PortsProbe.current else { throw NodeProblem("there is no probe") }
    session = try RTCPorts(setup, RTCPorts.Inputs(), RTCPorts.Outputs(audio: 0)) {
      (exchange) throws(NodeProblem) in
      probe.exchange = exchange
      return nil
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.process(&ports) }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.finish(&ports) }
}

/// A node that only sends, whose call is the test.
struct SendingPortsNode: ~Copyable, Node {
  static let contract = NodeContract(
    "test.sendingPorts", "sends sound", inputs: [RTCPortContracts.audioIn], parameters: RTCParameters.session,
    events: DialogEvent.contracts, drive: .itself)

  private var session: RTCPorts

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let probe = PortsProbe.current else { throw NodeProblem("there is no probe") }
    session = try RTCPorts(
      setup, RTCPorts.Inputs(audio: 0), RTCPorts.Outputs(), sound: SoundUplinkSettings()
    ) { (exchange) throws(NodeProblem) in
      probe.exchange = exchange
      return nil
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.process(&ports) }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.finish(&ports) }
}

@Suite("the end of a node with sessions") struct PortsTests {
  private let probe = PortsProbe()

  /// Packets of 20 ms arrive on time, and wait for 200 ms.
  private func deliver(_ count: Int, _ bench: NodeBench) throws {
    let start = bench.now
    for (index, packet) in try SoundProbe.tone(1)[10..<10 + count].enumerated() {
      try bench.advance(to: start + .milliseconds(Int64(index) * 20))
      probe.exchange.deliver(packet, at: bench.now)
      try bench.run()
    }
  }

  /// Time passes until the node has ended, at most two seconds.
  private func wait(_ bench: NodeBench) throws {
    for _ in 0..<400 where !bench.hasEnded { try bench.advance(by: .milliseconds(5)) }
  }

  @Test("sound that came before the peer ended is still played", arguments: [false, true])
  func playsOut(finishes: Bool) throws {
    let bench = try probe.bench(["jitterLeast": 200])
    try deliver(10, bench)
    #expect(bench.packets("audio").isEmpty)
    probe.exchange.end.report(nil)
    if finishes { try bench.finish() } else { try wait(bench) }
    #expect(bench.hasEnded)
    let sound = bench.float("audio")
    #expect(sound.count >= 48 * 180)
    #expect(longestSilence(Array(sound.dropFirst(48 * 20).prefix(48 * 150)), rate: 48_000) <= 10)
    #expect(bench.close() == [])
  }

  @Test("sound that cannot be played delays the end for as long as it may wait, and 100 ms")
  func bound() throws {
    let bench = try probe.bench(["jitterLeast": 200], outputLimit: 1)
    bench.hold("audio")
    try deliver(10, bench)
    probe.exchange.end.report(nil)
    let start = bench.now
    try wait(bench)
    #expect(bench.hasEnded)
    #expect((290...310).contains((bench.now - start) / 1_000_000))
    bench.release("audio")
    _ = bench.packets("audio")
    #expect(bench.close() == [])
  }

  @Test("without sound to play the end is at once")
  func silent() throws {
    let bench = try probe.bench()
    try bench.run()
    let now = bench.now
    probe.exchange.end.report(nil)
    try bench.run()
    #expect(bench.hasEnded && bench.now == now)
    #expect(bench.close() == [])
  }

  /// As a graph does that drains.
  private func drain(_ bench: NodeBench) { bench.wiring.node.pointee.isDraining = true }

  @Test(
    "a node that drains is done after 300 ms of silence: where its sound leads back to it, that never ends"
  )
  func drainsSilence() throws {
    let bench = try probe.sendingBench()
    drain(bench)
    let tone = Fixture.sine(440, rate: 48_000, frames: 960)
    let silence = [Float](repeating: 0, count: 960)
    var end: Nanoseconds?
    for number in 0..<200 where end == nil {
      // The last packet of the tone comes after 480 ms.
      bench.push(number < 25 ? tone : silence)
      try bench.advance(by: .milliseconds(20))
      if probe.exchange.isOver.load(ordering: .relaxed) { end = bench.now }
    }
    let milliseconds = try #require(end) / 1_000_000
    #expect((780...840).contains(milliseconds))
    #expect(probe.exchange.takeSent().count >= 25)

    // What still comes would keep the sessions for ever.
    bench.push(tone)
    try bench.run()
    #expect(probe.exchange.takeSent().isEmpty && !bench.hasEnded)
    probe.exchange.end.report(nil)
    try bench.run()
    #expect(bench.hasEnded)
    #expect(bench.close() == [])
  }

  @Test("a node that does not drain sends silence for as long as it comes")
  func keepsSilence() throws {
    let bench = try probe.sendingBench()
    var sent = 0
    for _ in 0..<100 {
      bench.push([Float](repeating: 0, count: 960))
      try bench.advance(by: .milliseconds(20))
      sent += probe.exchange.takeSent().count
    }
    #expect(!probe.exchange.isOver.load(ordering: .relaxed) && sent >= 99)
    #expect(bench.close() == [])
  }

  @Test("a command that the call did not read before its end is answered by the node")
  func lateCommand() throws {
    let bench = try probe.bench()
    try bench.run()
    probe.exchange.end.report(nil)
    for text in [#"{"command":"mute","track":"audio","on":true,"id":"9"}"#, #"{"command":"hangUp"}"#, "{"] {
      CallBench.put(Array(text.utf8), MediaRecord.command, probe.exchange.commands)
    }
    try bench.run()
    #expect(bench.hasEnded && probe.exchange.commands.peek() == nil)
    let answers = bench.events().filter { $0.name == "answer" }
    #expect(answers.map { $0.string("id") } == ["9"])
    #expect(answers.first?.bool("ok") == false && answers.first?.string("text") == "the call has ended")
    #expect(bench.close() == [])
  }
}
