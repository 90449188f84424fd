import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Never takes a packet.
struct Sleeper: Node {
  static let contract = NodeContract(
    "test.sleep", "takes nothing", inputs: [PortContract("in", .any, text: "anything")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { .done }
}

/// Emits three packets in its first call, though its contract promises one at most.
struct Gusher: Node {
  static let contract = NodeContract(
    "test.gush", "emits too much", outputs: [PortContract("out", .any, text: "packets")], drive: .itself
  ) { $0.outputs["out"] = testShape }
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    for _ in 0..<3 { ports.emit(try ports.makePacket(bytes: 4, of: .none)) }
    return .ended
  }
}

/// Forwards each packet on its second output, and on the first one too when there is room.
struct Brancher: Node {
  static let contract = NodeContract(
    "test.branch", "forwards twice", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [
      PortContract("spare", .any, text: "where there is room"), PortContract("out", .any, text: "all"),
    ]
  ) {
    $0.outputs["spare"] = testShape
    $0.outputs["out"] = testShape
  }
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    if ports.hasRoomOrRequestsWake(0) { ports.emit(packet.share(), to: 0) }
    ports.emit(packet, to: 1)
    return .done
  }
}

@Suite("A node that emits into a full link", .timeLimit(.minutes(30)))
struct FullLinkTests {
  @Test("fails under the policy \"fail\", and the link is named with its capacity and the cure")
  func policyFail() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 100])
    builder.link(source, builder.add("reader", "test.silent"))
    builder.link(source, builder.add("sleeper", "test.sleep"), limit: 4, policy: .fail)
    #expect(
      try builder.plan.runToEnd().failure?.description
        == "node \"source\": link \"source -> sleeper\" was full with 4 packets and has policy \"fail\"; raise its capacity, or choose another policy"
    )
  }

  @Test("is not blocked where its contract declares that it checks for room itself")
  func asksItself() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 100])
    let branch = builder.add("branch", "test.branch")
    builder.link(source, branch)
    builder.link(branch, builder.add("sleeper", "test.sleep"), limit: 2, output: 0, burst: 0)
    builder.link(branch, builder.add("sink", "test.collect", ["probe": "asksItself"]), output: 1)
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(builder.plan)
    let probe = Probe.named("asksItself")
    let deadline = ContinuousClock.now + .seconds(60)
    while probe.finished == 0 && ContinuousClock.now < deadline { pauseBriefly() }
    run.stop()
    #expect(run.waitUntilStopped(timeout: .seconds(120)) != nil)
    #expect(probe.values == Array(0..<100))
  }

  @Test("fails when it emits more than its contract allows, and the link is named with the number allowed")
  func burst() throws {
    var builder = PlanBuilder()
    let source = builder.add("gusher", "test.gush")
    builder.link(source, builder.add("sleeper", "test.sleep"), limit: 1)
    #expect(
      try builder.plan.runToEnd().failure?.description
        == "node \"gusher\": emitted more packets into link \"gusher -> sleeper\" in one call than its contract allows (1); report it to the node's author"
    )
  }
}
