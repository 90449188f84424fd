internal import MillraceCore

/// Says when an event about something that is counted is to be told: when the count has grown, and at the pace of `EventPace`.
struct CountedEvent {
  private var told = 0
  private var pace = EventPace()

  /// True when a count, which only grows, is to be told now; it then counts as told. `isLast`: at an end, whatever the time.
  mutating func isDue(_ count: Int, at now: Nanoseconds, isLast: Bool = false) -> Bool {
    guard count > told, pace.allows(at: now, isLast: isLast) else { return false }
    told = count
    return true
  }
}
