public import MillraceCore

/// When the next piece of sound may be sent: some at once, then one an interval, counted from one beginning and never from the
/// piece before, so that a thousand late wake-ups do not add up.
///
/// A source that stalls for longer than `slack` begins the count anew: what it missed is not hurried after. A value; no clock, no
/// heap.
public struct Pacer: Sendable, Hashable {
  /// Time between two pieces, in nanoseconds; 1 at least.
  public let interval: Nanoseconds
  /// Pieces that go without waiting at the beginning.
  public let burst: Int
  /// How late a piece may be before the count begins anew.
  public let slack: Nanoseconds

  private var start: Nanoseconds?
  private var sent = 0

  /// A pacer whose count begins with its first piece. Without `slack`, two intervals.
  public init(interval: Nanoseconds, burst: Int = 1, slack: Nanoseconds? = nil) {
    self.interval = max(1, interval)
    self.burst = max(1, burst)
    self.slack = slack ?? self.interval &* 2
  }

  /// When the next piece may go: `now`, or later.
  public func due(at now: Nanoseconds) -> Nanoseconds {
    guard let start else { return now }
    return max(now, start &+ Nanoseconds(max(0, sent &- burst &+ 1)) &* interval)
  }

  /// A piece was sent.
  public mutating func noteSent(at now: Nanoseconds) {
    guard let start else {
      start = now
      sent = 1
      return
    }
    let plan = start &+ Nanoseconds(max(0, sent &- burst &+ 1)) &* interval
    if sent >= burst && now &- plan > slack {
      // As if the burst were just over: the next piece is due an interval from now.
      self.start = now
      sent = burst
    } else {
      sent += 1
    }
  }

  /// What follows is a new utterance: its burst goes at once.
  public mutating func begin() {
    start = nil
    sent = 0
  }
}
