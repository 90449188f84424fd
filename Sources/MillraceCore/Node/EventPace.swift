/// Keeps an event that may come in swarms to one a second. The node gathers what it has to tell, asks whether it may, and asks once more
/// at the end of what the event belongs to, so that nothing is lost:
///
///     lost += count
///     if lost > 0, pace.allows(at: ports.now) {
///       ports.post(event) { $0.field("samples", lost) }
///       lost = 0
///     }
///
/// The first is told at once, and so is one that comes a second or more after the last. Where the clock stands still, as it does while a
/// file is worked off on a virtual clock, the first and the sum at the end are told.
///
/// Not for events that each mean something by themselves, such as a device that is lost. One thread at a time; a comparison, no heap.
package struct EventPace {
  /// Least time between two tellings: short enough to read along, and a few events a node in the time the engine's event blocks last.
  package static let interval = Nanoseconds.milliseconds(1_000)

  private var toldAt: Nanoseconds?

  /// Nothing told yet.
  package init() {}

  /// True when the event may be told at `now` on the graph's clock; it then counts as told. `isLast`: at an end, whatever the time.
  package mutating func allows(at now: Nanoseconds, isLast: Bool = false) -> Bool {
    if let toldAt, now &- toldAt < Self.interval, !isLast { return false }
    toldAt = now
    return true
  }
}
