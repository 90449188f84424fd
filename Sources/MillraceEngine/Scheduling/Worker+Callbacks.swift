internal import Glibc
internal import MillraceCore
internal import Synchronization

/// Scheduled callbacks on a virtual clock: the worker runs them itself, between two steps of the clock.
extension Worker {
  /// Adds a strand whose run has scheduled callbacks; runs those already due.
  @inline(never)
  func takeCallbacks(of strand: Strand) {
    threadOwner.assertIsCurrent()
    if unsafe !callbackStrands.contains(where: { $0 === strand }) { unsafe callbackStrands.append(strand) }
    unsafe strand.run.callbacks.runDue(at: now &- strand.epoch)
    unsafe waitForDecision(about: strand.run)
  }

  /// Removes a retired strand.
  func forgetCallbacks(of strand: Strand) { unsafe callbackStrands.removeAll { $0 === strand } }

  /// Nothing is ready: advances the clock to the next callback and runs it, unless a timer is due earlier.
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

  /// On a virtual clock: waits until the supervisor has made all pending decisions about a run. That takes a few microseconds, or
  /// as long as creating a node, so this thread only yields.
  func waitForDecision(about run: GraphRun) {
    while run.pendingDecisions.load(ordering: .acquiring) > 0 { sched_yield() }
  }
}

extension GraphRun {
  /// Time of the next callback on the worker's clock; nil when there is none, or the graph has ended.
  fileprivate func callbackTime(since start: Nanoseconds) -> Nanoseconds? {
    let next = callbacks.next
    guard next != Nanoseconds.max, liveCells.load(ordering: .relaxed) > 0 else { return nil }
    let (time, overflow) = next.addingReportingOverflow(start)
    return overflow ? nil : time
  }
}
