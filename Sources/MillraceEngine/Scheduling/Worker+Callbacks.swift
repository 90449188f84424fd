internal import Glibc
internal import MillraceCore
internal import Synchronization

/// ScheduledCallbacks of runs on a virtual clock: the worker keeps them itself, between two steps of the clock.
extension Worker {
  /// Takes in a strand whose run has appointments. What is due already is done now.
  @inline(never)
  func takeCallbacks(of strand: Strand) {
    if unsafe !callbackStrands.contains(where: { $0 === strand }) { unsafe callbackStrands.append(strand) }
    unsafe strand.run.callbacks.runDue(at: now &- strand.epoch)
    unsafe waitForDecision(about: strand.run)
  }

  /// The strand is retired: nothing of its run happens any more.
  func forgetCallbacks(of strand: Strand) { unsafe callbackStrands.removeAll { $0 === strand } }

  /// Nothing is ready. Moves the clock to the next appointment and keeps it, unless a timer is due before.
  func runDueCallbacks(before deadline: Nanoseconds?) -> Bool {
    var earliest = deadline ?? Nanoseconds.max
    var isFound = false
    for strand in unsafe callbackStrands {
      guard let time = unsafe strand.run.callbackTime(since: strand.epoch), time <= earliest else {
        continue
      }
      (earliest, isFound) = (time, true)
    }
    guard isFound else { return false }
    moveClock(to: earliest)
    for strand in unsafe callbackStrands {
      unsafe strand.run.callbacks.runDue(at: earliest &- strand.epoch)
      unsafe waitForDecision(about: strand.run)
    }
    return true
  }

  /// On a virtual clock: the supervisor has been asked about a run, and time stands still until it has answered. That takes a
  /// few microseconds, or as long as a node is made: this thread only gives its processor away.
  func waitForDecision(about run: GraphRun) {
    while run.pendingDecisions.load(ordering: .acquiring) > 0 { sched_yield() }
  }
}

extension GraphRun {
  /// Time of the next appointment on the worker's clock; nil when there is none, or the graph is at its end.
  fileprivate func callbackTime(since start: Nanoseconds) -> Nanoseconds? {
    let next = callbacks.next
    guard next != Nanoseconds.max, liveCells.load(ordering: .relaxed) > 0 else { return nil }
    let (time, overflow) = next.addingReportingOverflow(start)
    return overflow ? nil : time
  }
}
