import Millrace
import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

@testable import MillraceRunner

@Suite("Problems in a report")
struct OffendersTests {
  private let plan: GraphPlan
  /// The report of a successful run: tone -> gain -> end.
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

  /// The problems of some runs, one per line.
  private func lines(_ reports: RunReport...) -> [String] {
    let merged = MergedReport(plan, title: "fine", runs: reports.map { ($0, "") }, wall: 1_000_000_000)
    return Offenders(merged).items.map { "\($0.isSerious ? "!" : "-") \($0.subject): \($0.text)" }
  }

  @Test("a successful run has none")
  func none() { #expect(lines(report).isEmpty) }

  @Test("failures and losses come before what was only slow, and the worst link comes first")
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
        "! Node end did not return: when it was stopped; its thread was abandoned.",
        "! Link gain -> end: dropped 11 newest when full.",
        "! Link tone -> gain: dropped 3 oldest when full, 2 newest when full, "
          + "1 stale after an interruption and 4 to shed load.",
        "! Node gain: was restarted 2 times after a failure.",
        "! Node end: received packets older than 45 ms in 1 call; the oldest was 90 ms old.",
        "! Media memory: 1 block not returned by a node.",
        "- Node tone: exceeded its budget of 500 us in 1 call (12.5 %); the longest took 1.5 ms.",
        "- Node gain: found no free block 1 time: a node holds more packets than it declares.",
        "- Events: 5 dropped because the program read them too slowly.",
      ])
  }

  @Test("intended drops are not losses: after an interruption, and to shed load")
  func meant() {
    var run = report
    run.links[0].droppedStale = 20
    run.links[1].droppedShed = 7
    #expect(
      lines(run) == [
        "- Link tone -> gain: dropped 20 stale after an interruption.",
        "- Link gain -> end: dropped 7 to shed load.",
      ])
  }

  @Test(
    "a node of the bulk lane may exceed its budget, and ages matter only where the graph sets a limit")
  func allowed() {
    var run = report
    run.nodes[2].lane = .bulk
    run.nodes[2].overBudget = 9
    run.nodes[1].overAge = 3
    #expect(lines(run).isEmpty)
  }

  @Test("several runs are combined, and a node that did not return in any of them is named once")
  func together() {
    var run = report
    run.detachedNodes = ["tone", "end"]
    run.links[0].droppedOldest = 1
    run.nodes[1].restarts = 1
    #expect(
      lines(run, run) == [
        "! Node end did not return: when it was stopped; its thread was abandoned.",
        "! Node tone did not return: when it was stopped; its thread was abandoned.",
        "! Link tone -> gain: dropped 2 oldest when full.",
        "! Node gain: was restarted 2 times after a failure.",
      ])
  }
}
