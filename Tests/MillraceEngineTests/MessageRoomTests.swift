import MillraceCore
import Testing

@testable import MillraceEngine

@Suite("Messages to a node whose events have no room", .timeLimit(.minutes(30)))
struct MessageRoomTests {
  @Test("messages wait until the link with the node's events has room, and none is lost")
  func room() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 1_000])
    let talker = builder.add("talker", "test.talkative")
    builder.link(source, talker, policy: .dropOldest)
    builder.link(talker, builder.add("sink", "test.late", ["probe": "room"]), limit: 4)
    let run = try Engine(catalogue: testCatalogue, workers: 1).start(builder.plan)
    // A mailbox that is full refuses the rest.
    let accepted = (0..<20).count { _ in (try? run.send("{}", to: "talker")) != nil }
    #expect(accepted > 4)
    // The sink takes nothing yet: a fifth event would not fit into the link.
    let probe = Probe.named("room")
    while probe.times.count < 50 && run.phase == .running { pauseBriefly() }
    #expect(probe.values.isEmpty && run.phase == .running)
    probe.state.withLock { $0.finished = 1 }
    while probe.values.count < accepted && run.phase == .running { pauseBriefly() }
    #expect(probe.values.count == accepted)
    run.stop()
    #expect(run.waitUntilStopped(timeout: .seconds(120))?.failure == nil)
  }
}

/// Posts an event for every message.
struct TalkativeNode: Node {
  static let contract = NodeContract(
    "test.talkative", "posts an event for every message",
    inputs: [PortContract("in", .any, text: "anything")],
    events: [EventContract("heard", text: "a message came")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { _ = consume packet }
    return .done
  }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    ports.post(0)
  }
}

/// Takes nothing before its probe has `finished`, and notes when it looked.
struct LateSink: Node {
  static let contract = NodeContract(
    "test.late", "takes nothing at first", inputs: [PortContract("in", .any, text: "anything")],
    parameters: [probeParameter], drive: .itself)
  let probe: Probe
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    probe.state.withLock { $0.times.append(ports.now) }
    while probe.finished > 0, let packet = ports.next() {
      _ = consume packet
      probe.state.withLock { $0.values.append(1) }
    }
    ports.wake(at: ports.now + 1_000_000)
    return .done
  }
}
