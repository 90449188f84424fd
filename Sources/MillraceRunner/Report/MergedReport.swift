internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceServer

/// The combined reports of the runs of a graph: counts are added, maxima are the greatest of all runs.
struct MergedReport {
  let plan: GraphPlan
  let title: String
  /// The individual runs, each with the label that the event monitor uses for it.
  let runs: [(report: RunReport, label: String)]
  let nodes: [NodeReport]
  let links: [LinkReport]
  /// Longest graph time of any run.
  let duration: Nanoseconds
  /// Wall-clock time, during which all runs ran in parallel.
  let wall: Nanoseconds

  init(_ plan: GraphPlan, title: String, runs: [(report: RunReport, label: String)], wall: Nanoseconds) {
    self.plan = plan
    self.title = title
    self.runs = runs
    self.wall = wall
    duration = runs.map(\.report.duration).max() ?? 0
    let reports = runs.map(\.report)
    nodes = plan.nodes.indices.map { index in
      reports.dropFirst().reduce(reports[0].nodes[index]) { $0.combined(with: $1.nodes[index]) }
    }
    links = plan.links.indices.map { index in
      reports.dropFirst().reduce(reports[0].links[index]) { $0.combined(with: $1.links[index]) }
    }
  }

  var isVirtual: Bool { plan.clock == .virtual }
  var failures: [RunFailure] { runs.compactMap(\.report.failure) }
  var delivered: Int { nodes.filter(\.isSink).reduce(0) { $0 + $1.packetsIn } }
  var dropped: Int { links.reduce(0) { $0 + $1.dropped } }
  var overBudget: Int { nodes.reduce(0) { $0 + $1.overBudget } }
  var busy: Nanoseconds { nodes.reduce(0) { $0 + $1.busy } }

  /// The share of one CPU that some work used, relative to wall-clock time.
  func processorShare(_ busy: Nanoseconds) -> Double { Double(busy) / Double(max(wall, 1)) }

  /// Packets per second of graph time and per run.
  func rate(_ packets: Int) -> Double {
    guard duration > 0 else { return 0 }
    return Double(packets) * 1e9 / Double(duration) / Double(runs.count)
  }

  /// The sum of a value over all runs.
  func sum(_ pick: (RunReport) -> Int) -> Int { runs.reduce(0) { $0 + pick($1.report) } }
}
