internal import MillraceCore

/// How much may happen: so much a second, and so much at once.
///
/// The generic cell rate algorithm (ITU-T I.371, annex A), which is a token bucket whose state is a single time: when it is full again. The
/// state begins as 0 or any other time that has passed.
struct RateLimit: Sendable {
  private let interval: Nanoseconds
  private let tolerance: Nanoseconds

  /// At least 1 a second.
  /// - Parameter burst: how much at once; nil: as much as in a second.
  init(perSecond: Int, burst: Int? = nil) {
    let rate = max(1, perSecond)
    self.init(every: max(1, 1_000_000_000 / Nanoseconds(rate)), burst: burst ?? rate)
  }

  /// One in so many nanoseconds.
  init(every interval: Nanoseconds, burst: Int) {
    self.interval = interval
    tolerance = interval * Nanoseconds(max(1, burst) - 1)
  }

  /// Counts one more, and returns nil; or returns the nanoseconds after which there is room for it.
  func take(_ state: inout Nanoseconds, at now: Nanoseconds) -> Nanoseconds? {
    take(1, &state, at: now)
  }

  /// Counts so many as one.
  func take(_ count: Int, _ state: inout Nanoseconds, at now: Nanoseconds) -> Nanoseconds? {
    if let excess = wait(count, state, at: now) { return excess }
    _ = charge(count, &state, at: now)
    return nil
  }

  /// The nanoseconds after which there is room for so many; nil: there is. There never is for more than a burst.
  func wait(_ count: Int, _ state: Nanoseconds, at now: Nanoseconds) -> Nanoseconds? {
    let excess = max(state, now) - now + interval * Nanoseconds(count - 1) - tolerance
    return excess > 0 ? excess : nil
  }

  /// Counts so many, whether there was room for them or not; returns the nanoseconds after which there is room for another.
  func charge(_ count: Int, _ state: inout Nanoseconds, at now: Nanoseconds) -> Nanoseconds {
    state = max(state, now) + interval * Nanoseconds(count)
    return max(0, state - now - tolerance)
  }
}
