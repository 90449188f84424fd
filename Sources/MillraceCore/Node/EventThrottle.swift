/// Limits an event that may come in bursts to one a second. The node accumulates what it reports, asks before each post, and asks once
/// more at the end of the stream or session, so that nothing is lost:
///
///     lost += count
///     if lost > 0, throttle.allows(at: ports.now) {
///       ports.post(event) { $0.field("samples", lost) }
///       lost = 0
///     }
///
/// The first event is posted at once, and so is one that comes a second or more after the last. When the clock stands still, as it does
/// while a file is processed on a virtual clock, only the first event and the final sum are posted.
///
/// Not for events that matter individually, such as the loss of a device. One thread at a time; a comparison, no heap.
package struct EventThrottle {
  /// Shortest time between two posts: frequent enough for a reader, and few enough for the engine's event blocks.
  package static let interval = Nanoseconds.milliseconds(1_000)

  private var lastPost: Nanoseconds?

  /// Creates a throttle that has posted nothing yet.
  package init() {}

  /// True when the event may be posted at `now` on the graph's clock; it then counts as posted. `isLast`: always true, for the final post.
  package mutating func allows(at now: Nanoseconds, isLast: Bool = false) -> Bool {
    if let lastPost, now &- lastPost < Self.interval, !isLast { return false }
    lastPost = now
    return true
  }
}
