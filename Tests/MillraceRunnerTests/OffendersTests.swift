import Millrace
import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

@testable import MillraceRunner

@Suite("What deserves a look first")
struct OffendersTests {
  private let plan: GraphPlan
  /// Of a run in which all went well: tone -> gain -> end.
  private var report: RunReport

  init() throws {
    var graph = GraphDescription("fine")
    graph.add("tone", "audio.tone", ["duration": 100])
    graph.add("gain", "audio.gain")
    graph.add("end", "flow.null")
    graph.link("tone -> gain -> end")
    plan = try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: .standard)
    let run = try Engine(catalogue: .standard, clock: .virtual, workers: 1).start(plan)
    report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    // How long a call took depends on the machine.
    for node in report.nodes.indices {
      report.nodes[node].overBudget = 0
      report.nodes[node].lane = .voice
    }
  }

  /// The offenders of some runs, each as a line.
  private func lines(_ reports: RunReport...) -> [String] {
    let merged = MergedReport(plan, title: "fine", runs: reports.map { ($0, "") }, wall: 1_000_000_000)
    return Offenders(merged).items.map { "\($0.isSerious ? "!" : "-") \($0.subject): \($0.text)" }
  }

  @Test("a run in which all went well has none")
  func none() { #expect(lines(report).isEmpty) }

  @Test("what failed or was lost stands above what was only slow, each in words, the worst link first")
  func everything() {
    var bad = report
    bad.failure = RunFailure(node: "gain", fault: nil, text: "broke")
    bad.detachedNodes = ["end"]
    bad.links[0].droppedOldest = 3
    bad.links[0].droppedNewest = 2
    bad.links[0].droppedStale = 1
    bad.links[0].droppedShed = 4
    bad.links[1].droppedNewest = 11
    bad.nodes[0].overBudget = 1
    bad.nodes[0].activations = 8
    bad.nodes[0].budget = 500
    bad.nodes[0].worst = 1_500_000
    bad.nodes[1].restarts = 2
    bad.nodes[1].starved = 1
    bad.nodes[2].overAge = 1
    bad.nodes[2].maxAge = .milliseconds(45)
    bad.nodes[2].worstAge = .milliseconds(90)
    bad.leakedBlocks = 1
    bad.lostEvents = 5
    #expect(
      lines(bad) == [
        "! Node gain failed: broke",
        "! Node end did not return: when it was stopped; its thread was left behind.",
        "! Link gain -> end: dropped 11 new when it was full.",
        "! Link tone -> gain: dropped 3 too old when it was full, 2 new when it was full, "
          + "1 of an interrupted reply and 4 to shed load.",
        "! Node gain: was made anew 2 times after a fault.",
        "! Node end: got packets older than 45 ms in 1 call, the oldest 90 ms old.",
        "! Media memory: 1 block not given back by a node.",
        "- Node tone: took longer than its 500 us in 1 call (12.5 %), at worst 1.5 ms.",
        "- Node gain: found no free block 1 time: something keeps more packets than it says.",
        "- Events: 5 came faster than the program took them, and were lost.",
      ])
  }

  @Test("what was meant to go is no loss: sound of an interrupted reply, and what was shed")
  func meant() {
    var run = report
    run.links[0].droppedStale = 20
    run.links[1].droppedShed = 7
    #expect(
      lines(run) == [
        "- Link tone -> gain: dropped 20 of an interrupted reply.",
        "- Link gain -> end: dropped 7 to shed load.",
      ])
  }

  @Test(
    "a node of the bulk lane may take its time, and ages count only where the graph says how old is too old")
  func allowed() {
    var run = report
    run.nodes[2].lane = .bulk
    run.nodes[2].overBudget = 9
    run.nodes[1].overAge = 3
    #expect(lines(run).isEmpty)
  }

  @Test("several runs are taken together, and a node that did not return in any of them is named once")
  func together() {
    var run = report
    run.detachedNodes = ["tone", "end"]
    run.links[0].droppedOldest = 1
    run.nodes[1].restarts = 1
    #expect(
      lines(run, run) == [
        "! Node end did not return: when it was stopped; its thread was left behind.",
        "! Node tone did not return: when it was stopped; its thread was left behind.",
        "! Link tone -> gain: dropped 2 too old when it was full.",
        "! Node gain: was made anew 2 times after a fault.",
      ])
  }
}
