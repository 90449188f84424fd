import CMallocCount
import CMillraceSys
import Glibc
import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Abandoned runs, refused threads, unreliable counters", .timeLimit(.minutes(30)))
struct AbandonedNodeTests {
  @Test(
    "a run abandoned because another graph's node blocked its worker may retire later, and is closed once")
  func lateRetirement() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let innocent = try engine.start(
      PlanBuilder.chain(source: ["count": -1], passes: 1, probe: "innocent"))
    let plan = PlanBuilder.through(
      "test.pass", ["hangAt": 5, "probe": "holder"], named: "stuck", source: ["count": -1], probe: "holder")
    let holder = try engine.start(plan)
    // After its fifth packet the node's next call does not return.
    while Probe.named("holder").hangs == 0 { pauseBriefly() }
    innocent.stop()
    let report = try #require(innocent.waitUntilStopped(timeout: .seconds(120)))
    #expect(
      report.failure?.text
        == "could not be destroyed: a node of another graph blocks the worker; stop that graph too")
    // The worker gets a new thread, which finds the request of the abandoned run.
    holder.stop()
    #expect(try #require(holder.waitUntilStopped(timeout: .seconds(120))).detachedNodes == ["stuck"])
    // Late messages have been handled when a run that starts now has ended.
    let next = try engine.start(PlanBuilder.chain(source: ["count": 10], passes: 1, probe: "after-holder"))
    #expect(try #require(next.waitUntilStopped(timeout: .seconds(120))).failure == nil)
    #expect(innocent.retiredStrands.load(ordering: .acquiring) == 1)
    #expect(engine.core.voiceWorkers[0].load.load(ordering: .relaxed) == 0)
    #expect(innocent.report().failure == report.failure)
    Probe.named("holder").state.withLock { $0.finished = 1_000 }
  }

  @Test("a worker whose call returned after all keeps its thread, and reports that")
  func returnedAfterAll() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let worker = engine.core.voiceWorkers[0]
    try #require(
      PlanBuilder.chain(source: ["count": 1], passes: 0, probe: "before-return").runToEnd(on: engine).failure
        == nil)
    // There is no cell at this address, so the worker is not calling it.
    #expect(worker.replaceThread(stuckIn: 1) == .kept)
    let report = try PlanBuilder.chain(source: ["count": 10], passes: 1, probe: "after-return").runToEnd(
      on: engine)
    #expect(report.failure == nil && Probe.named("after-return").values.count == 10)
  }

  @Test(
    "a run whose worker is in one long call of another graph at its deadline waits for its turn, and stops properly"
  )
  func slowWorker() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let waiting = try engine.start(PlanBuilder.chain(source: ["count": -1], passes: 1, probe: "waiting"))
    // The call takes longer than a stop may, but it ends.
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 1])
    let slow = builder.add("slow", "test.burn", ["work": 2_200_000, "probe": "slow"])
    builder.link(source, slow, limit: 64)
    let other = try engine.start(builder.plan)
    while Probe.named("slow").state.withLock({ $0.made }) < 1 { pauseBriefly() }
    waiting.stop()
    let report = try #require(waiting.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty)
    #expect(try #require(other.waitUntilStopped(timeout: .seconds(120))).failure == nil)
  }

  @Test("a graph with long calls delays another graph's turn by at most one of them")
  func turnsEnd() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 50])
    let slow = builder.add("slow", "test.burn", ["work": 200_000, "probe": "turns"])
    builder.link(source, slow, limit: 64)
    let heavy = try engine.start(builder.plan)
    while Probe.named("turns").state.withLock({ $0.made }) < 1 { pauseBriefly() }
    let light = try engine.start(PlanBuilder.chain(source: ["count": 10], passes: 1, probe: "light"))
    _ = try #require(light.waitUntilStopped(timeout: .seconds(120)))
    // By the number of calls, all the work of the other graph would fit into one turn.
    #expect(Probe.named("turns").state.withLock { $0.made } < 50)
    heavy.stop()
    _ = try #require(heavy.waitUntilStopped(timeout: .seconds(120)))
  }

  @Test(
    "a worker whose stuck thread cannot be replaced keeps it and says so, and gets its new one as soon as there is one",
    .enabled(if: millrace_malloc_counting_available() != 0, "the sanitizers take address space of their own"))
  func noRelief() async {
    await #expect(processExitsWith: .success) {
      let engine = Engine(catalogue: testCatalogue, workers: 1)
      let plan = PlanBuilder.through(
        "test.pass", ["hangAt": 5, "probe": "relief"], named: "stuck", source: ["count": -1], probe: "relief")
      let holder = try engine.prepare(plan)
      let heard = Task {
        var texts: [String] = []
        for await event in holder.events where event.name == "workerHeld" { texts.append(event.json) }
        return texts
      }
      // The listener subscribes before the start.
      while holder.listeners.isEmpty { pauseBriefly() }
      holder.start()
      while Probe.named("relief").hangs == 0 { pauseBriefly() }
      let whole = try limitMemory(toMore: 4 << 20)
      holder.stop()
      let report = try #require(holder.waitUntilStopped(timeout: .seconds(60)))
      let words =
        "the system refused a new thread for its worker: Resource temporarily unavailable (errno 11); graphs on that worker are blocked until the node returns or a thread is available; end other programs of this user, or raise the limits (ulimit -u, -v)"
      #expect(report.failure?.text == "did not return when the graph was stopped; \(words)")
      #expect(report.detachedNodes == ["stuck"])
      #expect(setLimit(whole) == 0)
      let told = await heard.value
      #expect(told.count == 1 && told.first?.contains(words) == true)
      // The worker runs again, although the node has not returned.
      let next = try engine.start(PlanBuilder.chain(source: ["count": 10], passes: 1, probe: "relieved"))
      #expect(try #require(next.waitUntilStopped(timeout: .seconds(60))).failure == nil)
      #expect(Probe.named("relieved").values.count == 10)
      #expect(holder.strands[0].nodeInCall(of: holder) == nil)
      // The node returns, and its thread does nothing more.
      Probe.named("relief").state.withLock { $0.finished = 1_000 }
    }
  }

  @Test(
    "a system that refuses a thread refuses the start with a message",
    .enabled(if: millrace_malloc_counting_available() != 0, "the sanitizers take address space of their own"))
  func noThread() async {
    await #expect(processExitsWith: .success) {
      // Less than a thread's stack is left.
      _ = try limitMemory(toMore: 4 << 20)
      let engine = Engine(catalogue: testCatalogue, workers: 4)
      let plan = PlanBuilder.chain(source: [:], passes: 1, probe: "no-thread")
      let problem = #expect(throws: StartProblem.self) { try engine.prepare(plan) }
      #expect(
        problem?.description
          == "the system refused to start a thread: Resource temporarily unavailable (errno 11); end other programs of this user, or raise the limits (ulimit -u, or the container's pids limit)"
      )
    }
  }

  @Test("a processor whose counter is not steady is timed by the clock")
  func unsteadyCounter() async {
    await #expect(processExitsWith: .success) {
      millrace_distrust_ticks()
      let before = millrace_monotonic_ns()
      let ticks = TickScale.now
      let after = millrace_monotonic_ns()
      #expect(ticks >= UInt64(before) && ticks <= UInt64(after))
      #expect(TickScale.machine.nanoseconds(1_000_000_000) == 1_000_000_000)
      let run = try Engine(catalogue: testCatalogue, workers: 1)
        .start(PlanBuilder.chain(source: ["count": 100, "interval": 1], passes: 1, probe: "unsteady"))
      let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
      #expect(report.failure == nil && report.nodes.allSatisfy { $0.busy < report.duration })
    }
  }
}

/// Limits the address space to its present size plus the given bytes; returns the previous limit.
private func limitMemory(toMore bytes: rlim_t) throws -> rlimit {
  var before = rlimit()
  #expect(getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &before) == 0)
  let statm = try String(decoding: readAll("/proc/self/statm"), as: UTF8.self)
  let pages = try #require(statm.split(separator: " ").first.flatMap { rlim_t($0) })
  #expect(setLimit(rlimit(rlim_cur: pages * 4096 + bytes, rlim_max: before.rlim_max)) == 0)
  return before
}

private func setLimit(_ limit: rlimit) -> Int32 {
  var limit = limit
  return setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
}

/// The contents of a file.
private func readAll(_ path: String) throws -> [UInt8] {
  let file = try #require(fopen(path, "r"))
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 4096)
  bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
  return bytes
}
