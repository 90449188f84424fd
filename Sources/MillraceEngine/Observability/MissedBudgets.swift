internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The missed budgets of a run. Workers count them in the nodes' counters and mark here that there are some; the supervisor posts
/// `budgetMissed`, at most once a second for each node.
@safe
final class MissedBudgets: @unchecked Sendable {
  /// The minimum time between two reports for one node.
  static let interval: Nanoseconds = .milliseconds(1_000)

  /// What was reported for one node, and when.
  private struct Reported {
    var calls = 0
    var ages = 0
    var at: Nanoseconds = 0
  }

  private let hasUnreported = Atomic<Bool>(false)
  /// By node. Used by the supervisor's thread only.
  private var reported: [Reported] = []

  /// False when a node may have missed a budget since its last report.
  var isEmpty: Bool { !hasUnreported.load(ordering: .relaxed) }

  /// A node has missed a budget. Called on its worker. True when it is the first since the last report.
  func mark() -> Bool { !hasUnreported.exchange(true, ordering: .acquiringAndReleasing) }

  /// Posts `budgetMissed` for every node that took too long, or received packets that were too old, since its last report. On the
  /// supervisor's thread.
  ///
  /// On a virtual clock, where the supervisor may run at any moment of graph time, everything is reported at the end, so that every
  /// run posts the same events.
  /// - Parameter now: real-clock time; `Nanoseconds.max` reports the rest, however recent.
  func report(of run: GraphRun, at now: Nanoseconds) {
    run.engine.supervisor.threadOwner.assertIsCurrent()
    let isVirtual = run.engine.clock == .virtual
    guard !isVirtual || now == Nanoseconds.max else { return }
    guard let memory = run.memory, hasUnreported.exchange(false, ordering: .acquiring) else { return }
    if reported.isEmpty { reported = run.plan.nodes.map { _ in Reported() } }
    for (index, node) in run.plan.nodes.enumerated() {
      let counters = unsafe memory.cellCounters + index
      let last = reported[index]
      let calls = isVirtual ? 0 : unsafe counters.pointee.overBudget.current
      let ages = unsafe counters.pointee.overAge.current
      guard calls > last.calls || ages > last.ages else { continue }
      guard last.at == 0 || now - last.at >= Self.interval else {
        hasUnreported.store(true, ordering: .relaxed)
        continue
      }
      if calls > last.calls {
        let ticks = unsafe UInt64(counters.pointee.lastOverBudget.current)
        run.announceMissedBudget(
          of: "call", TickScale.machine.nanoseconds(ticks), budget: Nanoseconds(node.budget) * 1_000,
          node: node.name, count: calls - last.calls)
      }
      if ages > last.ages {
        run.announceMissedBudget(
          of: "age", unsafe Nanoseconds(counters.pointee.lastOverAge.current), budget: node.maxAge ?? 0,
          node: node.name, count: ages - last.ages)
      }
      reported[index] = Reported(calls: calls, ages: ages, at: now)
    }
  }
}

extension GraphRun {
  /// - Parameters:
  ///   - value: of the last miss.
  ///   - count: misses since the last such event.
  fileprivate func announceMissedBudget(
    of what: String, _ value: Nanoseconds, budget: Nanoseconds, node: String, count: Int
  ) {
    announce("budgetMissed", node: node) { json in
      json.member("of", what)
      json.member("value", Double(value) / 1e6)
      json.member("budget", Double(budget) / 1e6)
      json.member("count", count)
    }
  }
}
