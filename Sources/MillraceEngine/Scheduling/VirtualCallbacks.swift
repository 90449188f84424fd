internal import MillraceCore
internal import Synchronization

/// Scheduled callbacks on a virtual clock: the worker runs them itself, between two steps of the clock. On the worker's thread.
@safe
struct VirtualCallbacks {
  /// Strands whose runs have scheduled callbacks.
  private var strands: [Strand] = []

  /// Adds a strand whose run has scheduled callbacks; runs those already due.
  mutating func add(_ strand: Strand, now: Nanoseconds) {
    if !strands.contains(where: { $0 === strand }) { strands.append(strand) }
    Self.runDue(of: strand, at: now)
  }

  /// Removes a retired strand.
  mutating func remove(_ strand: Strand) { strands.removeAll { $0 === strand } }

  /// Time of the earliest callback on the worker's clock, if it is not after `limit`.
  func next(until limit: Nanoseconds?) -> Nanoseconds? {
    let next = strands.compactMap { strand in unsafe strand.run.callbackTime(since: strand.epoch) }.min()
    return next.flatMap { $0 <= limit ?? Nanoseconds.max ? $0 : nil }
  }

  /// Runs the callbacks that are due, and waits until the supervisor has made the decisions they caused.
  func runDue(at now: Nanoseconds) {
    for strand in strands { Self.runDue(of: strand, at: now) }
  }

  private static func runDue(of strand: Strand, at now: Nanoseconds) {
    unsafe strand.run.callbacks.runDue(at: now &- strand.epoch)
    unsafe strand.run.decisions.waitUntilNone()
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
