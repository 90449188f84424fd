import Glibc
import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Quiet runs", .timeLimit(.minutes(30)))
struct QuietTests {
  /// Waits for something that a thread beside this one brings about. False after five minutes at least.
  private func comes(_ condition: () -> Bool) -> Bool {
    for _ in 0..<300_000 {
      if condition() { return true }
      usleep(1_000)
    }
    return condition()
  }

  @Test("a worker sheds and continues while the control side's state is locked")
  func shedsWithoutLock() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 1])
    let voice = builder.add("voice", "test.collect", ["probe": "unlocked-voice"])
    let pictures = builder.add("pictures", "test.collect", ["probe": "unlocked-pictures"])
    builder.link(source, voice, policy: .dropOldest)
    builder.link(source, pictures, policy: .dropOldest)
    let run = try Engine(catalogue: testCatalogue, workers: 1).start(builder.plan)
    let probe = Probe.named("unlocked-voice")
    #expect(comes { probe.values.count > 10 })
    let shed = try #require(run.memory).linkCounters + 1
    let (hasShed, goesOn) = run.status.withLock { _ in
      run.shedNodes.replace(with: [pictures])
      for strand in run.strands { strand.request(Strand.Request.shed) }
      let hasShed = comes { shed.pointee.droppedShed.current > 0 }
      let seen = probe.values.count
      return (hasShed, comes { probe.values.count > seen + 10 })
    }
    #expect(hasShed)
    #expect(goesOn)
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
  }

  @Test("a decision is taken once, and one that is not taken is released")
  func failureDecisions() throws {
    weak var left: AnyExecutor?
    do {
      let board = FailureDecisions(count: 3)
      let held = AnyExecutor()
      left = held
      board.put(.isolate, for: 0)
      board.put(.replace(.passRetained(held)), for: 1)
      if case .isolate = board.take(for: 0) {} else { Issue.record("the verdict is missing") }
      if case .none = board.take(for: 0) {} else { Issue.record("taken twice") }
      guard case .replace(let executor) = board.take(for: 1) else {
        Issue.record("the executor is missing")
        return
      }
      #expect(executor.takeRetainedValue() === held)
      board.put(.replace(.passRetained(held)), for: 2)
      board.put(.isolate, for: 2)
      board.put(.replace(.passRetained(held)), for: 1)
    }
    #expect(left == nil)
  }

  @Test("a set of nodes holds the last members set, beyond one word too")
  func nodeSet() {
    let set = NodeSet(count: 130)
    set.replace(with: [0, 63, 64, 129])
    #expect((0..<130).filter(set.contains) == [0, 63, 64, 129])
    set.replace(with: [65])
    #expect((0..<130).filter(set.contains) == [65])
  }

  @Test("the supervisor skips quiet runs, however many, and serves one that has events")
  func quietRuns() async throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    /// Endless numbers into a silent sink, and some into one that announces each.
    func prepare(_ count: Int) throws -> GraphRun {
      var builder = PlanBuilder()
      let endless = builder.add("endless", "test.count", ["count": -1, "interval": 5])
      builder.link(
        endless, builder.add("silent", "test.collect", ["probe": "quiet-runs"]), policy: .dropOldest)
      let source = builder.add("source", "test.count", ["count": .integer(count), "interval": 5])
      builder.link(source, builder.add("sink", "test.announce"), policy: .dropOldest)
      for index in builder.plan.nodes.indices { builder.plan.nodes[index].budget = 1_000_000_000 }
      return try engine.prepare(builder.plan)
    }
    let quiet = try (0..<40).map { _ in try prepare(0) }
    for run in quiet { run.start() }
    let talking = try prepare(30)
    let listener = talking.events
    let before = engine.core.supervisor.servedWakes.current
    talking.start()
    var count = 0
    for await event in listener where event.name == "seen" {
      count += 1
      if count == 30 { break }
    }
    // Not more often than it had events.
    let servedWakes = engine.core.supervisor.servedWakes.current - before
    #expect(servedWakes >= 1 && servedWakes <= 30)
    #expect(Probe.named("quiet-runs").values.count > 40)
    for run in quiet + [talking] { run.stop() }
    for run in quiet { _ = await run.wait() }
  }

  @Test("a run that is stopped while its listener is full is not served after its end")
  func stoppedWithoutRoom() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 20_000])
    builder.link(source, builder.add("sink", "test.announce"))
    let run = try engine.prepare(builder.plan)
    let listener = run.listen(patience: Nanoseconds.max)
    let memory = try #require(run.memory)
    let outbox = memory.linkCounters + builder.plan.links.count
    run.start()
    // The listener is full, and the worker has more to deliver.
    #expect(
      comes {
        // A few slots are taken by the run's own events.
        outbox.pointee.popped.current >= EventQueue.limit - EventQueue.reserve - 8
          && outbox.pointee.queued > 0
      })
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(outbox.pointee.queued == 0)
    // The supervisor runs a few turns; a debug build ends the process when it still finds the run.
    _ = try PlanBuilder.chain(source: ["count": 5], passes: 1, probe: "behind-a-full-one").runToEnd(
      on: engine)
    withExtendedLifetime((listener, memory)) {}
  }
}
