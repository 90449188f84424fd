internal import MillraceCore

/// A grid of slots at a fixed interval from a start time, each computed from its number, so that nothing drifts.
struct SampleGrid: Sendable {
  let interval: Nanoseconds
  private var start: Nanoseconds?
  /// Number of the next slot.
  private(set) var slot: Int64 = 0

  init(interval: Nanoseconds) { self.interval = interval }

  /// The time of the next slot. The first call fixes the grid: its first slot is at `now`.
  mutating func next(now: Nanoseconds) -> Nanoseconds {
    let begin = start ?? now
    start = begin
    return begin &+ slot &* interval
  }

  /// Advances to the next slot.
  mutating func advance() { slot += 1 }

  /// Advances to the last slot up to a time, and returns how many were missed.
  mutating func advance(upTo now: Nanoseconds) -> Int64 {
    let last = max(slot, (now &- (start ?? now)) / interval)
    defer { slot = last }
    return last - slot
  }

  /// Advances to the first slot not before a time, and returns how many were skipped.
  mutating func advance(to time: Nanoseconds) -> Int64 {
    let first = max(slot, (time &- (start ?? time) &+ interval - 1) / interval)
    defer { slot = first }
    return first - slot
  }
}
