import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Statistics of a run", .timeLimit(.minutes(30)))
struct StatisticsTests {
  @Test("the first packet through is one that a sink took")
  func firstPacket() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let whole = try engine.start(PlanBuilder.chain(source: ["count": 3], passes: 1, probe: "first"))
    let report = try #require(whole.waitUntilStopped(timeout: .seconds(120)))
    #expect(try #require(report.timeToFirstPacket) > 0)
    // The middle node fails with its first packet: no sink ever gets one.
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 3])
    let pass = builder.add("pass", "test.pass", ["failAt": 0], onError: .isolate)
    let sink = builder.add("sink", "test.collect", ["probe": "none"])
    builder.link(source, pass)
    builder.link(pass, sink)
    let broken = try engine.start(builder.plan)
    let without = try #require(broken.waitUntilStopped(timeout: .seconds(120)))
    #expect(without.nodes[pass].packetsIn > 0 && without.nodes[sink].packetsIn == 0)
    #expect(without.timeToFirstPacket == nil)
  }

  @Test("a run that closes loses its counters in the step in which its last report comes: no report is empty")
  func whileClosing() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    for _ in 0..<100 {
      let run = try engine.start(PlanBuilder.chain(source: ["count": 3], passes: 1, probe: "closing"))
      var hasReport = false
      var isEmpty = false
      while !hasReport && !isEmpty {
        (hasReport, isEmpty) = run.status.withLock {
          ($0.finalReport != nil, $0.finalReport == nil && run.memory == nil)
        }
      }
      #expect(!isEmpty)
      #expect(run.report().nodes.map(\.packetsIn) == [0, 3, 3])
    }
  }

  @Test("a writer whose blocks are all held waits for one, is counted as starved, and loses nothing")
  func starved() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 200])
    let hoard = builder.add("hoard", "test.hoard")
    builder.link(source, hoard)
    let report = try builder.plan.runToEnd(.virtual)
    #expect(report.nodes[source].starved > 0)
    #expect(report.nodes[hoard].packetsIn == 200)
    #expect(report.leakedBlocks == 0)
  }

  @Test(
    "every packet of a run that was stopped is counted: taken, dropped for its age, or discarded",
    arguments: [LinkPolicy.block, .dropOldest, .dropNewest, .latest])
  func conserved(policy: LinkPolicy) throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 1])
    let slow = builder.add("slow", "test.burn", ["work": 3_000, "probe": "conserved"])
    builder.link(source, slow, limit: 6, policy: policy)
    // So slow that packets are queued for it whenever the stop happens.
    let other = builder.add("other", "test.burn", ["work": 300_000, "probe": "conserved"], lane: .bulk)
    builder.link(source, other, limit: 6, policy: policy)
    let run = try Engine(catalogue: testCatalogue, workers: 1).start(builder.plan)
    while run.report().links.contains(where: { $0.popped < 2 }) { pauseBriefly() }
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.links.allSatisfy { $0.pushed == $0.popped + $0.droppedOldest + $0.discarded })
    // A link that keeps only the newest may happen to be empty.
    if policy != .latest { #expect(report.links.contains { $0.discarded > 0 }) }
    #expect(report.leakedBlocks == 0)
  }

  @Test("a node that requests a wake-up on a message is called at that time")
  func wishInReceive() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 1_000])
    let alarm = builder.add("alarm", "test.alarm", ["probe": "alarm"])
    builder.link(source, alarm, policy: .dropOldest)
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(builder.plan)
    try run.send("{}", to: "alarm")
    let probe = Probe.named("alarm")
    while probe.times.count < 2 { pauseBriefly() }
    #expect(probe.times[1] - probe.times[0] >= .milliseconds(20))
    run.stop()
    _ = run.waitUntilStopped(timeout: .seconds(120))
  }
}

/// Holds every packet, and releases one per millisecond.
struct HoardNode: Node, ~Copyable {
  static let contract = NodeContract(
    "test.hoard", "keeps packets", inputs: [PortContract("in", .any, text: "anything")])
  private var writer: RingWriter<Packet>
  private var reader: RingReader<Packet>

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let ring = Ring<Packet>(minimumCapacity: 256)
    writer = ring.writer
    reader = ring.reader
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else {
      _ = reader.pop()
      ports.wake(at: ports.now + .milliseconds(1))
      return .done
    }
    writer.push(packet)
    ports.wake(at: ports.now + .milliseconds(1))
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while reader.pop() != nil {}
    return .ended
  }
}

/// Records when a message arrived, and when the call it requested for 20 ms later came.
struct AlarmNode: Node {
  static let contract = NodeContract(
    "test.alarm", "wakes itself after a message", inputs: [PortContract("in", .any, text: "anything")],
    parameters: [probeParameter])
  let probe: Probe
  private var isSet = false

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let packet = ports.next() { _ = consume packet } else if isSet { note(ports.now) }
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    note(ports.now)
    isSet = true
    ports.wake(at: ports.now + .milliseconds(20))
  }

  private func note(_ time: Nanoseconds) { probe.state.withLock { $0.times.append(time) } }
}
