import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

/// What a test and a node that has nothing but ports for messages share. On the thread of the test.
private final class MessageProbe: @unchecked Sendable {
  @TaskLocal static var current: MessageProbe?

  /// Made by the node.
  var exchange: RTCExchange!

  func bench() throws -> NodeBench {
    try Self.$current.withValue(self) {
      try NodeBench(
        MessageNode.self, ["largest": 1_024], inputs: ["data": nodeText], outputs: ["data", "events"])
    }
  }
}

/// A node whose call is the test.
private struct MessageNode: ~Copyable, Node {
  static let contract = NodeContract(
    "test.messages", "passes messages", inputs: [RTCPortContracts.dataIn],
    outputs: [RTCPortContracts.dataOut], parameters: RTCParameters.session, events: DialogEvent.contracts,
    drive: .itself,
    resolve: { resolution in
      resolution.pacing = .live
      resolution.outputs["data"] = OutputShape(.text, packetDuration: nil, packetBytes: 1_024, burst: 0)
    })

  private var session: RTCPorts

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let probe = MessageProbe.current else { throw NodeProblem("there is no probe") }
    session = try RTCPorts(setup, RTCPorts.Inputs(data: 0), RTCPorts.Outputs(data: 0)) {
      (exchange) throws(NodeProblem) in
      probe.exchange = exchange
      return nil
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.process(&ports) }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try session.finish(&ports) }
}

@Suite("the messages of a node with sessions") struct CallMessageTests {
  private let probe = MessageProbe()

  private func errors(_ bench: NodeBench) -> [String] {
    bench.events().filter { $0.name == "error" }.map {
      "\($0.string("name") ?? "-") \($0.string("scope") ?? "-") \(Int($0.number("count") ?? 0))"
    }
  }

  @Test("what cannot be passed is one error a second of each kind, and at the end the rest")
  func errorsOfAKind() throws {
    let bench = try probe.bench()
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: 2_000)
    for _ in 0..<5 { bench.push(bytes: long, to: "data") }
    try bench.run()
    for _ in 0..<2 { CallBench.put(long, MediaRecord.text, probe.exchange.dataDown) }
    for _ in 0..<3 { CallBench.put([0xFF], MediaRecord.binary, probe.exchange.dataDown) }
    probe.exchange.waker.wake()
    try bench.run()
    #expect(bench.texts("data").isEmpty && probe.exchange.dataUp.peek() == nil)
    #expect(errors(bench) == ["tooLarge command 1", "tooLarge connection 1", "sctpFailed connection 1"])
    probe.exchange.end.report(nil)
    try bench.run()
    #expect(bench.hasEnded)
    #expect(errors(bench) == ["tooLarge command 4", "tooLarge connection 1", "sctpFailed connection 2"])
    #expect(bench.close() == [])
  }

  @Test("an empty message passes in both directions")
  func empty() throws {
    let bench = try probe.bench()
    bench.push(text: "", to: "data")
    try bench.run()
    CallBench.put([], MediaRecord.text, probe.exchange.dataDown)
    CallBench.put([], MediaRecord.binary, probe.exchange.dataDown)
    probe.exchange.waker.wake()
    try bench.run()
    #expect(probe.exchange.dataUp.peek()?.bytes.count == 0)
    #expect(bench.texts("data") == ["", ""] && errors(bench) == [])
    #expect(bench.close() == [])
  }
}
