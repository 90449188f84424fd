import Glibc
import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Takes some time for every packet, and when destroyed.
struct SlowNode: Node {
  static let contract = NodeContract(
    "test.slow", "takes its time", inputs: [PortContract("in", .any, text: "anything")],
    parameters: [
      probeParameter,
      ParameterContract("call", .integer(0...1_000), unit: "ms", default: 0, text: "what a packet takes"),
      ParameterContract("end", .integer(0...1_000), unit: "ms", default: 0, text: "what dropping it takes"),
    ])
  private let probe: Probe
  private let call: Int
  private let ending: SlowEnding

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
    call = setup.parameters.integer("call")
    ending = SlowEnding(milliseconds: setup.parameters.integer("end"))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.next() != nil else { return .done }
    usleep(UInt32(call) * 1_000)
    probe.state.withLock { $0.made += 1 }
    return .done
  }
}

private final class SlowEnding {
  private let milliseconds: Int
  init(milliseconds: Int) { self.milliseconds = milliseconds }
  deinit { usleep(UInt32(milliseconds) * 1_000) }
}

@Suite("The watchdog of a stopping run", .timeLimit(.minutes(30)))
struct StopWatchdogTests {
  @Test("a stuck node is abandoned within two seconds, another graph's a second later")
  func standstill() {
    var stop = StopWatchdog(at: 1_000)
    var ownAt: Nanoseconds?
    while !stop.othersAreStuck {
      stop.sample(turns: 7, now: stop.nextSample)
      if stop.ownNodesAreStuck && ownAt == nil { ownAt = stop.nextSample - StopWatchdog.interval }
    }
    let othersAt = stop.nextSample - StopWatchdog.interval
    #expect(ownAt == 1_000 + .milliseconds(1_900))
    #expect(othersAt == 1_000 + .milliseconds(2_900))
  }

  @Test("a worker that makes progress is given time, however long it takes to reach this run")
  func slowButMoving() throws {
    var stop = StopWatchdog(at: 0)
    for round in 0..<1_000 {
      for _ in 0..<StopWatchdog.ownNodeLimit { stop.sample(turns: round, now: stop.nextSample) }
      try #require(!stop.ownNodesAreStuck)
    }
    stop.sample(turns: 999, now: stop.nextSample)
    #expect(stop.ownNodesAreStuck)
  }

  @Test(
    "a graph whose turn comes late because of many others stops properly, although its nodes take time to destroy"
  )
  func crowd() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    // One round of the worker through all of these takes longer than a stop may take.
    let others = try (0..<40).map { _ in
      var builder = PlanBuilder()
      let source = builder.add("source", "test.count", ["count": -1])
      let slow = builder.add("slow", "test.slow", ["call": 60, "probe": "crowd"])
      builder.link(source, slow)
      return try engine.start(builder.plan)
    }
    // After its first packet this one needs no turn for a second, so its stop waits for a whole round.
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 1_000])
    let slow = builder.add("slow", "test.slow", ["end": 150, "probe": "late"])
    builder.link(source, slow)
    let late = try engine.start(builder.plan)
    while Probe.named("late").state.withLock({ $0.made }) < 1 { pauseBriefly() }
    late.stop()
    let report = try #require(late.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty, "\(String(describing: report.failure))")
    for other in others { other.stop() }
    for other in others { _ = try #require(other.waitUntilStopped(timeout: .seconds(120))) }
  }
}
