internal import MillraceCore

/// Decides when to post an event about a count: when it has grown, rate-limited by `EventThrottle`.
struct CountedEvent {
  private var told = 0
  private var pace = EventThrottle()

  /// True if a count, which only grows, is to be posted now; it then counts as posted. `isLast`: at an end, regardless of time.
  mutating func isDue(_ count: Int, at now: Nanoseconds, isLast: Bool = false) -> Bool {
    guard count > told, pace.allows(at: now, isLast: isLast) else { return false }
    told = count
    return true
  }
}
