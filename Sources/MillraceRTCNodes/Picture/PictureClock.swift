internal import MillraceCore

/// Maps the timestamps of a source's pictures to the graph's clock, as if the fastest picture of the last seconds had no delay.
///
/// The fastest of the last five to ten seconds counts, so that a sender whose clock is slow is followed. A value; no heap.
struct PictureClock {
  /// The least difference between arrival and timestamp, in the current and the previous window.
  private var present = Nanoseconds.max
  private var past = Nanoseconds.max
  private var windowEnd = Nanoseconds.min

  private static let window = Nanoseconds.milliseconds(5_000)
  /// A larger jump of the difference is no delay: the source has begun to count again.
  private static let jump: UInt64 = 10_000_000_000

  /// When a picture is due on the graph's clock. A picture may be noted more than once.
  /// - Parameters:
  ///   - timestamp: by the clock of 90 kHz (RFC 6184, 8.2.1; RFC 7741, 4.1), counted on beyond 32 bits.
  ///   - arrival: when it was complete, on the graph's clock.
  mutating func time(_ timestamp: Int64, arrival: Nanoseconds) -> Nanoseconds {
    // 1/90,000 s is 100,000/9 ns.
    let media = timestamp &* 100_000 / 9
    let difference = arrival &- media
    let known = min(present, past)
    if known != .max, (difference &- known).magnitude > Self.jump { (present, past) = (.max, .max) }
    if arrival >= windowEnd {
      windowEnd = arrival &+ Self.window
      past = present
      present = .max
    }
    present = min(present, difference)
    return media &+ min(present, past)
  }
}
