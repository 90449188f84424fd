public import MillraceCore

/// Schedules when the next piece of audio may be sent: a burst at once, then one per interval, counted from the first piece, so that a
/// thousand late wake-ups do not add up.
///
/// After a stall longer than `slack` the schedule restarts: missed pieces are not caught up. A value without a clock; does not
/// allocate.
public struct Pacer: Sendable, Hashable {
  /// Time between two pieces in nanoseconds, at least 1.
  public let interval: Nanoseconds
  /// Pieces sent without waiting at the beginning.
  public let burst: Int
  /// The longest delay of a piece before the schedule restarts.
  public let slack: Nanoseconds

  private var start: Nanoseconds?
  private var sent = 0

  /// Creates a pacer whose schedule begins with its first piece. The default `slack` is two intervals.
  public init(interval: Nanoseconds, burst: Int = 1, slack: Nanoseconds? = nil) {
    self.interval = max(1, interval)
    self.burst = max(1, burst)
    self.slack = slack ?? self.interval &* 2
  }

  /// When the next piece may be sent: `now`, or later.
  public func due(at now: Nanoseconds) -> Nanoseconds {
    guard let start else { return now }
    return max(now, start &+ Nanoseconds(max(0, sent &- burst &+ 1)) &* interval)
  }

  /// Records that a piece was sent.
  public mutating func noteSent(at now: Nanoseconds) {
    guard let start else {
      start = now
      sent = 1
      return
    }
    let plan = start &+ Nanoseconds(max(0, sent &- burst &+ 1)) &* interval
    if sent >= burst && now &- plan > slack {
      // As if the burst had just ended: the next piece is due one interval from now.
      self.start = now
      sent = burst
    } else {
      sent += 1
    }
  }

  /// Starts a new utterance: its burst is sent at once.
  public mutating func begin() {
    start = nil
    sent = 0
  }
}
