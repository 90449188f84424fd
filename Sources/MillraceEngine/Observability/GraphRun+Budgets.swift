internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The missed budgets of one node that were reported: their number, and when.
struct ReportedBudgets {
  var calls = 0
  var ages = 0
  var at: Nanoseconds = 0
}

extension GraphRun {
  /// The minimum time between two reports for one node.
  static let missedBudgetInterval: Nanoseconds = .milliseconds(1_000)

  /// Posts `budgetMissed` for every node that took too long, or received packets that were too old, since its last report.
  /// - Parameter now: real-clock time; `Nanoseconds.max` reports the rest, however recent.
  ///
  /// The workers leave counts and a flag. On a virtual clock, where the supervisor may run at any moment of graph time, everything
  /// is reported at the end, so that every run posts the same events.
  func reportMissedBudgets(at now: Nanoseconds) {
    engine.supervisor.threadOwner.assertIsCurrent()
    guard engine.clock == .realtime || now == Nanoseconds.max else { return }
    guard let memory = memory, hasMissed.exchange(false, ordering: .acquiring) else { return }
    if reportedBudgets.isEmpty { reportedBudgets = plan.nodes.map { _ in ReportedBudgets() } }
    for index in plan.nodes.indices {
      let counters = unsafe memory.cellCounters + index
      let calls = engine.clock == .virtual ? 0 : unsafe counters.pointee.overBudget.current
      let ages = unsafe counters.pointee.overAge.current
      guard calls > reportedBudgets[index].calls || ages > reportedBudgets[index].ages else { continue }
      guard reportedBudgets[index].at == 0 || now - reportedBudgets[index].at >= Self.missedBudgetInterval
      else {
        hasMissed.store(true, ordering: .relaxed)
        continue
      }
      let node = plan.nodes[index]
      if calls > reportedBudgets[index].calls {
        let last = unsafe UInt64(counters.pointee.lastOverBudget.current)
        report(
          node, of: "call", TickScale.machine.nanoseconds(last), budget: Nanoseconds(node.budget) * 1_000,
          calls - reportedBudgets[index].calls)
      }
      if ages > reportedBudgets[index].ages {
        let last = unsafe Nanoseconds(counters.pointee.lastOverAge.current)
        report(node, of: "age", last, budget: node.maxAge ?? 0, ages - reportedBudgets[index].ages)
      }
      reportedBudgets[index] = ReportedBudgets(calls: calls, ages: ages, at: now)
    }
  }

  /// - Parameters:
  ///   - value: of the last miss.
  ///   - count: misses since the last such event.
  private func report(
    _ node: GraphPlan.Node, of what: String, _ value: Nanoseconds, budget: Nanoseconds, _ count: Int
  ) {
    announce("budgetMissed", node: node.name) { json in
      json.member("of", what)
      json.member("value", Double(value) / 1e6)
      json.member("budget", Double(budget) / 1e6)
      json.member("count", count)
    }
  }
}
