import MillraceCore
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceEngine

@Suite("Interruption", .serialized, .timeLimit(.minutes(30)))
struct InterruptionTests {
  /// A bot's reply through a random tree of nodes on random lanes, over links of random size and policy, to slow and fast sinks.
  private static func randomPlan(_ dice: inout SeededGenerator, witness: String, interval: Int) -> (
    GraphPlan, isLossless: Bool
  ) {
    var builder = PlanBuilder()
    let isLossless = dice.roll(0...2) > 0
    let policies: [LinkPolicy] = isLossless ? [.block] : [.block, .dropOldest, .dropNewest, .latest]
    func lane() -> Lane { dice.roll(0...1) == 0 ? .voice : .bulk }
    func probe() -> [String: ParameterValue] { ["probe": .string(witness)] }
    func link(_ from: Int, _ to: Int) {
      builder.link(
        from, to, limit: dice.roll(1...40), policy: policies[dice.roll(0...policies.count - 1)])
    }
    let source = builder.add(
      "reply", "test.reply",
      ["probe": .string(witness), "spared": .integer(dice.roll(3...9)), "interval": .integer(interval)],
      lane: lane())
    var ends = [source]
    for index in 0..<dice.roll(1...8) {
      let node = builder.add(
        "keep\(index)", "test.keep", ["probe": .string(witness), "depth": .integer(dice.roll(0...8))],
        lane: lane())
      // One output may feed several nodes; every node has one input.
      link(ends[dice.roll(max(0, ends.count - 2)...ends.count - 1)], node)
      ends.append(node)
    }
    let leaves = ends.filter { end in !builder.plan.links.contains { $0.from.node == end } }
    for (index, leaf) in leaves.enumerated() {
      let pace = interval > 0 ? 0 : dice.roll(0...3)
      let sink = builder.add(
        "sink\(index)", "test.listen", ["probe": .string(witness), "every": .integer(max(0, pace - 1))],
        lane: lane())
      link(leaf, sink)
    }
    return (builder.plan, isLossless)
  }

  @Test(
    "in any graph, with any backlog and at any moment, nothing stale arrives once a node was notified",
    arguments: 1...24)
  func property(seed: Int) throws {
    var dice = SeededGenerator(state: UInt64(seed) &* 7_919)
    let name = "property\(seed)"
    let (plan, _) = Self.randomPlan(&dice, witness: name, interval: 0)
    let engine = Engine(catalogue: testCatalogue, workers: 1 + seed % 2)
    let run = try engine.start(plan)
    let witness = Witness.named(name)
    let rounds = 12
    for round in 1...rounds {
      let before = witness.heard.load(ordering: .relaxed)
      for _ in 0..<dice.roll(0...400) { pauseBriefly() }
      run.interrupt()
      if round % 3 == 0 { continue }
      // The bot's new packets must get through after every interruption.
      while witness.heard.load(ordering: .relaxed) == before { pauseBriefly() }
    }
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.failure == nil)
    #expect(witness.stale.load(ordering: .relaxed) == 0)
    #expect(witness.leaked.load(ordering: .relaxed) == 0)
    #expect(witness.told.load(ordering: .relaxed) > 0)
    #expect(report.leakedBlocks == 0)
  }

  @Test(
    "what belongs to no reply, and what must be played, all arrives in spite of interruptions",
    arguments: 1...8)
  func spared(seed: Int) throws {
    var dice = SeededGenerator(state: UInt64(seed) &* 104_729)
    let name = "spared\(seed)"
    var plan = Self.randomPlan(&dice, witness: name, interval: 0).0
    for index in plan.links.indices { plan.links[index].policy = .block }
    let engine = Engine(catalogue: testCatalogue, workers: 2)
    let run = try engine.start(plan)
    let witness = Witness.named(name)
    while witness.sparedSent.load(ordering: .relaxed) == 0 { pauseBriefly() }
    for _ in 0..<10 {
      for _ in 0..<dice.roll(0...200) { pauseBriefly() }
      run.interrupt()
    }
    run.drain()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let sinks = plan.nodes.count { $0.contract.type == "test.listen" }
    let sent = witness.sparedSent.load(ordering: .relaxed)
    #expect(sent > 0)
    #expect(witness.sparedHeard.load(ordering: .relaxed) == sent * sinks)
    #expect(witness.stale.load(ordering: .relaxed) == 0)
    for link in report.links { #expect(link.pushed == link.popped + link.discarded) }
  }

  @Test("a node can interrupt, duck and resume; playback is notified of each once, in order, at that time")
  func fromNode() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 30, "interval": 20])
    let decides = builder.add("decides", "test.bargeIn")
    let plays = builder.add("plays", "test.playback", ["probe": "from node"])
    builder.link(source, decides)
    builder.link(source, plays)
    try builder.plan.runToEnd(.virtual)
    let probe = Probe.named("from node")
    #expect(
      probe.texts == [
        "interrupted", "duck", "resume", "interrupted", "duck", "resume", "interrupted", "duck", "resume",
      ])
    #expect(probe.times == [0, 3, 6, 10, 13, 16, 20, 23, 26].map { $0 * 20_000_000 })
  }

  @Test("the program ducks and resumes; repeating either has no effect, an interruption ends ducking")
  func fromProgram() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 5])
    let plays = builder.add("plays", "test.playback", ["probe": "from program"], lane: .bulk)
    builder.link(source, plays)
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(builder.plan)
    let probe = Probe.named("from program")
    func until(_ count: Int) { while probe.texts.count < count { pauseBriefly() } }
    try run.duck()
    until(1)
    try run.duck()
    try run.resume()
    until(2)
    try run.resume()
    try run.duck()
    until(3)
    run.interrupt()
    until(4)
    try run.duck()
    until(5)
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(probe.texts == ["duck", "resume", "duck", "interrupted", "duck"])
    let refusal = #expect(throws: ControlProblem.self) { try run.duck() }
    #expect(refusal?.code == .runStopped)
  }

  @Test("a recreated playback node is notified that its graph is ducked")
  func restarted() throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": -1, "interval": 5])
    let plays = builder.add(
      "plays", "test.playback", ["probe": "recreated", "failAt": 20], onError: .restart)
    builder.link(source, plays)
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.prepare(builder.plan)
    let probe = Probe.named("recreated")
    try run.duck()
    run.start()
    while probe.texts.count < 2 { pauseBriefly() }
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(probe.texts == ["duck", "duck"])
    #expect(probe.state.withLock { $0.made } == 2)
  }

  @Test("a graph without playback refuses to duck")
  func nothingToDuck() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(
      PlanBuilder.chain(source: ["count": -1, "interval": 5], passes: 0, probe: "no playback"))
    let refusal = #expect(throws: ControlProblem.self) { try run.duck() }
    #expect(refusal?.code == .noPlayback)
    run.stop()
    _ = run.waitUntilStopped(timeout: .seconds(120))
  }
}
