internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The current totals of several runs.
struct RunTotals {
  var running = 0
  var draining = 0
  var stopped = 0
  /// Longest graph time of any run.
  var time: Nanoseconds = 0
  /// Packets read by sinks.
  var delivered = 0
  /// Packets emitted by all nodes.
  var emitted = 0
  var dropped = 0
  var busy: Nanoseconds = 0
  var worst: Nanoseconds = 0
  var worstNode = ""
  var overBudget = 0

  init(_ runs: [GraphRun]) {
    for run in runs { add(run.report(), run.plan) }
  }

  private mutating func add(_ report: RunReport, _ plan: GraphPlan) {
    switch report.phase {
    case .prepared, .running: running += 1
    case .draining, .stopping: draining += 1
    case .stopped: stopped += 1
    }
    time = max(time, report.duration)
    for (node, planned) in zip(report.nodes, plan.nodes) {
      if planned.isSink { delivered += node.packetsIn }
      emitted += node.packetsOut
      busy += node.busy
      overBudget += node.overBudget
      if node.worst > worst { (worst, worstNode) = (node.worst, node.name) }
    }
    for link in report.links { dropped += link.dropped }
  }
}
