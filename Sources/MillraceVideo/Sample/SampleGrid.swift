internal import MillraceCore

/// Slots at a fixed distance from a first time, each computed from its number, so that nothing drifts.
struct SampleGrid: Sendable {
  let interval: Nanoseconds
  private var start: Nanoseconds?
  /// Number of the next slot.
  private(set) var slot: Int64 = 0

  init(interval: Nanoseconds) { self.interval = interval }

  /// When the next slot is. The first question fixes the grid: its first slot is at `now`.
  mutating func next(now: Nanoseconds) -> Nanoseconds {
    let begin = start ?? now
    start = begin
    return begin &+ slot &* interval
  }

  /// Goes on to the next slot.
  mutating func advance() { slot += 1 }

  /// Goes on to the first slot after a time, and answers how many lie between: they were missed.
  mutating func advance(past now: Nanoseconds) -> Int64 {
    let following = max(slot + 1, (now &- (start ?? now)) / interval + 1)
    defer { slot = following }
    return following - slot - 1
  }
}
