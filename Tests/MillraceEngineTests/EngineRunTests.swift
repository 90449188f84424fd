import CMillraceSys
import MillraceCore
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceEngine

/// Yields the processor for a moment while a test waits for a condition.
func pauseBriefly() { for _ in 0..<200 { millrace_pause() } }

@Suite("A run of a graph", .timeLimit(.minutes(30)))
struct EngineRunTests {
  @Test("carries every packet in order from source to sink and stops by itself", arguments: [0, 1, 9, 70])
  func carriesEverything(passes: Int) throws {
    let name = "order\(passes)"
    let report = try PlanBuilder.chain(source: ["count": 10_000], passes: passes, probe: name).runToEnd()
    #expect(report.phase == .stopped)
    #expect(report.failure == nil)
    #expect(Probe.named(name).values == (0..<10_000).map(Int32.init))
    #expect(Probe.named(name).finished == 1)
    #expect(report.leakedBlocks == 0)
    #expect(report.links.allSatisfy { $0.pushed == 10_000 && $0.popped == 10_000 && $0.dropped == 0 })
  }

  @Test("carries every packet across lanes, even over a link of one packet", arguments: [1, 3, 16])
  func crossesLanes(limit: Int) throws {
    let name = "lanes\(limit)"
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let plan = PlanBuilder.chain(
      source: ["count": 5_000], passes: 2, probe: name, sinkLane: .bulk, limit: limit)
    let run = try engine.start(plan)
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(Probe.named(name).values == (0..<5_000).map(Int32.init))
    #expect(report.leakedBlocks == 0)
  }

  @Test(
    "carries every packet from disk to voice to disk, whatever the capacity of the links", arguments: 1...5)
  func crossesLanesTwice(limit: Int) throws {
    let name = "disk\(limit)"
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 3_000], lane: .bulk)
    let pass = builder.add("pass", "test.pass")
    let sink = builder.add("sink", "test.collect", ["probe": .string(name)], lane: .bulk)
    builder.link(source, pass, limit: limit)
    builder.link(pass, sink, limit: limit)
    let run = try Engine(catalogue: testCatalogue, workers: 1).start(builder.plan)
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(Probe.named(name).values == (0..<3_000).map(Int32.init))
    #expect(report.links.allSatisfy { $0.pushed == 3_000 && $0.popped == 3_000 && $0.highWater <= limit + 1 })
  }

  @Test("a node that returns again is called again before its next packet arrives")
  func again() throws {
    // Without further calls a number's repetitions would wait for the next number.
    let plan = PlanBuilder.through("test.repeat", source: ["count": 5, "interval": 20], probe: "again")
    try plan.runToEnd(.virtual)
    #expect(Probe.named("again").values == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4])
    #expect(Probe.named("again").times == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4].map { $0 * 20_000_000 })
  }

  @Test("a node that works on a packet for several calls continues with those queued meanwhile")
  func backlog() throws {
    // From another lane packets come while a number is still being repeated.
    let plan = PlanBuilder.through("test.repeat", source: ["count": 100], sourceLane: .bulk, probe: "backlog")
    try plan.runToEnd()
    #expect(Probe.named("backlog").values == (0..<100).flatMap { Array(repeating: Int32($0), count: $0) })
  }

  @Test("a node that requests a call and takes nothing in it is still finished when its input ends")
  func hesitant() throws {
    // The end arrives with the last packet: it is already there in the requested call, and no further wake-up follows.
    let plan = PlanBuilder.through(
      "test.hesitant", source: ["count": 5, "endsWithLast": true], probe: "hesitant")
    try plan.runToEnd()
    #expect(Probe.named("hesitant").values == [0, 1, 2, 3, 4])
  }

  @Test("a paced source emits each packet when it is due, and age is measured")
  func paced() throws {
    let report = try PlanBuilder.chain(
      source: ["count": 10, "interval": 5], passes: 1, probe: "paced", policy: .dropOldest
    ).runToEnd()
    let times = Probe.named("paced").times
    #expect(times.count == 10)
    for (index, time) in times.enumerated() { #expect(time >= Int64(index) * 5_000_000) }
    #expect(report.nodes.last?.worstAge != nil)
  }

  @Test("on the virtual clock time advances at once and is exact")
  func virtual() throws {
    let report = try PlanBuilder.chain(
      source: ["count": 3_000, "interval": 20], passes: 3, probe: "virtual", policy: .dropOldest
    ).runToEnd(.virtual)
    let expected: [Nanoseconds] = (0..<3_000).map { Int64($0) * 20_000_000 }
    #expect(Probe.named("virtual").times == expected)
    #expect(report.duration == 2_999 * 20_000_000)
  }

  @Test("a failing node stops the graph, with the node's own message")
  func failureStops() throws {
    let plan = PlanBuilder.through(
      "test.pass", ["failAt": 10, "probe": "failing"], named: "pass", source: ["count": -1], probe: "failing")
    let report = try plan.runToEnd()
    #expect(report.failure?.description == "node \"pass\": packet 42 was not to its taste")
    #expect(Probe.named("failing").values == (0..<10).map(Int32.init))
  }

  @Test("an isolated node ends its branch and affects no other")
  func failureIsolates() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 1_000])
    let bad = builder.add("bad", "test.pass", ["failAt": 10, "probe": "isolated-bad"], onError: .isolate)
    let badSink = builder.add("badSink", "test.collect", ["probe": "isolated-bad"])
    let good = builder.add("good", "test.collect", ["probe": "isolated-good"])
    builder.link(source, bad)
    builder.link(bad, badSink)
    builder.link(source, good)
    let report = try builder.plan.runToEnd()
    #expect(report.failure == nil)
    #expect(Probe.named("isolated-good").values.count == 1_000)
    #expect(Probe.named("isolated-bad").values == (0..<10).map(Int32.init))
    #expect(Probe.named("isolated-bad").finished == 1)
  }

  @Test("a restarted node continues with the next packet")
  func failureRestarts() throws {
    let plan = PlanBuilder.through(
      "test.pass", ["failAt": 12, "probe": "restarted"], named: "pass", onError: .restart,
      source: ["count": 30], probe: "restarted")
    let report = try plan.runToEnd()
    #expect(report.failure == nil)
    // The packet of each failed call is lost: number 12, and 13 later.
    let expected: [Int32] = (0..<30).filter { $0 != 12 && $0 != 25 }
    #expect(Probe.named("restarted").values == expected)
    #expect(report.nodes[1].restarts == 2)
  }

  @Test("a node that keeps failing stops the graph after five restarts")
  func restartLimit() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1])
    let pass = builder.add("pass", "test.pass", ["failAt": 0, "probe": "hopeless"], onError: .restart)
    builder.link(source, pass)
    let report = try builder.plan.runToEnd()
    #expect(
      report.failure?.text == "packet 42 was not to its taste (failed 6 times in 10 s, not restarted again)")
    #expect(report.nodes[1].restarts == 5)
  }

  @Test("stop ends an endless graph, drain lets the last packet through")
  func stopAndDrain() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let endless = try engine.start(
      PlanBuilder.chain(source: ["count": -1], passes: 3, probe: "endless", sinkLane: .bulk))
    while Probe.named("endless").values.count < 100 { pauseBriefly() }
    endless.stop()
    let stopped = try #require(endless.waitUntilStopped(timeout: .seconds(120)))
    #expect(stopped.leakedBlocks == 0 && stopped.failure == nil)

    let drained = try engine.start(
      PlanBuilder.chain(source: ["count": -1], passes: 3, probe: "drained", sinkLane: .bulk))
    while Probe.named("drained").values.count < 100 { pauseBriefly() }
    drained.drain()
    let report = try #require(drained.waitUntilStopped(timeout: .seconds(120)))
    let values = Probe.named("drained").values
    let expected: [Int32] = Array(0..<Int32(values.count))
    #expect(values == expected)
    #expect(report.links.allSatisfy { $0.pushed == values.count })
    #expect(Probe.named("drained").finished == 1)
  }

  @Test("a node that does not return is named and abandoned, and its worker serves others again")
  func hangingNode() throws {
    let plan = PlanBuilder.through(
      "test.pass", ["hangAt": 5, "probe": "hanging"], named: "stuck", source: ["count": -1], probe: "hanging")
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(plan)
    while Probe.named("hanging").hangs == 0 { pauseBriefly() }
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.detachedNodes == ["stuck"])
    #expect(
      report.failure?.description
        == "node \"stuck\": did not return when the graph was stopped; its thread was abandoned after 2 s")
    // The engine has only this one voice worker: it must work again.
    let next = try engine.start(PlanBuilder.chain(source: ["count": 100], passes: 2, probe: "after-hang"))
    let after = try #require(next.waitUntilStopped(timeout: .seconds(120)))
    #expect(after.failure == nil && Probe.named("after-hang").values.count == 100)
    // Release the abandoned thread, so that it ends with the test.
    Probe.named("hanging").state.withLock { $0.finished = 1_000 }
  }

  @Test("a run keeps its engine alive")
  func engineDropped() throws {
    var run: GraphRun?
    do {
      let engine = Engine(catalogue: testCatalogue, workers: 1)
      run = try engine.start(
        PlanBuilder.chain(
          source: ["count": 50, "interval": 2], passes: 1, probe: "dropped", policy: .dropOldest))
    }
    let report = try #require(run?.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil)
    #expect(Probe.named("dropped").values.count == 50)
  }

  @Test("a run that is prepared and never started releases everything; when stopped it reports that")
  func neverStarted() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let plan = PlanBuilder.chain(source: ["count": 5], passes: 2, probe: "never")
    do { _ = try engine.prepare(plan) }
    #expect(engine.core.voiceWorkers[0].load.load(ordering: .relaxed) == 0)
    let run = try engine.prepare(plan)
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.phase == .stopped && report.leakedBlocks == 0)
    #expect(Probe.named("never").values.isEmpty)
  }

  @Test("two nodes that fail at the same moment stop the graph once, and only the first is reported")
  func twoFailures() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1])
    for name in ["a", "b", "c"] {
      let bad = builder.add(name, "test.pass", ["failAt": 3, "probe": "two-failures"])
      builder.link(source, bad)
    }
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    for _ in 0..<50 {
      let run = try engine.start(builder.plan)
      let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
      #expect(report.failure?.text == "packet 42 was not to its taste")
    }
  }

  @Test("a node is called when it asked to be, although no packet arrived")
  func wish() throws {
    let plan = PlanBuilder.through("test.echo", source: ["count": 2, "interval": 500], probe: "wish")
    try plan.runToEnd(.virtual)
    #expect(Probe.named("wish").times == [0, 100, 500].map { $0 * 1_000_000 })
  }

  @Test("a node that cannot be created refuses the start, with its message and the cure")
  func refusedStart() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count")
    let bad = builder.add("bad", "test.refuse")
    builder.link(source, bad)
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let problem = #expect(throws: StartProblem.self) { try engine.start(builder.plan) }
    #expect(problem?.description == "node \"bad\": the weather is bad; wait for the sun")
  }

  @Test("messages reach the node before its next packet; wrong ones are refused with a message")
  func control() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(
      PlanBuilder.chain(
        source: ["count": -1, "interval": 1], passes: 1, probe: "control", policy: .dropOldest))
    try run.set("pass0", "level", to: 3.5)
    try run.send("{\"say\":\"hello\"}", to: "pass0")
    while Probe.named("control").texts.count < 2 { pauseBriefly() }
    #expect(Probe.named("control").texts == ["level=3.5", "{\"say\":\"hello\"}"])
    func refusal(_ node: String, _ parameter: String, _ value: ParameterValue) -> String? {
      #expect(throws: ControlProblem.self) { try run.set(node, parameter, to: value) }?.text
    }
    #expect(refusal("pas0", "level", 1) == "no node is named \"pas0\"; did you mean \"pass0\"?")
    #expect(
      refusal("pass0", "levle", 1)
        == "\"pass0\" (test.pass) has no parameter \"levle\"; did you mean \"level\"?")
    #expect(
      refusal("pass0", "failAt", 1)
        == "\"failAt\" of \"pass0\" cannot be set while the graph runs; its live parameters are level")
    #expect(
      refusal("pass0", "level", 200)
        == "\"level\" of \"pass0\" cannot be 200; it takes a number from -100.0 to 100.0")
    run.stop()
    _ = run.waitUntilStopped(timeout: .seconds(120))
  }

  @Test("events arrive in order as a sequence that ends with the run")
  func events() async throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 100])
    let sink = builder.add("sink", "test.announce")
    builder.link(source, sink)
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(builder.plan)
    let events = run.events
    run.start()
    var names: [String] = []
    var values: [String] = []
    for await event in events {
      names.append(event.name)
      if event.name == "seen" { values.append(event.json) }
    }
    #expect(names.first == "started" && names.last == "stopped")
    #expect(values.count == 100)
    #expect(values.first == "{\"time\":0.000000,\"node\":\"sink\",\"event\":\"seen\",\"value\":0}")
    let report = await run.wait()
    #expect(report.lostEvents == 0)
  }

  @Test("a thousand instances of a graph run at once and all finish")
  func manyInstances() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 2)
    let plan = PlanBuilder.chain(
      source: ["count": 20, "interval": 5], passes: 8, probe: "many", policy: .dropOldest)
    let runs = try (0..<1_000).map { _ in try engine.start(plan, observesEvents: false) }
    for run in runs {
      let report = try #require(run.waitUntilStopped(timeout: .seconds(60)))
      #expect(report.leakedBlocks == 0 && report.failure == nil)
    }
    #expect(Probe.named("many").values.count == 20_000)
  }

  @Test("the trace names run, node and worker of every call")
  func trace() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    var reader = engine.makeTraceReader()
    let run = try engine.start(PlanBuilder.chain(source: ["count": 50], passes: 1, probe: "trace"))
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let spans = reader.read()
    for node in report.nodes { #expect(spans.count { $0.node == node.name } == node.activations) }
    #expect(spans.allSatisfy { $0.run == "test" && $0.worker == "millrace-v1" && $0.duration >= 0 })
    #expect(reader.read().isEmpty)
  }
}
