internal import MillraceCore

/// How often something may happen: so many a second, and as many at once.
///
/// The generic cell rate algorithm (ITU-T I.371, annex A), which is a token bucket whose state is a single time: when it is full again.
struct RateLimit: Sendable {
  private let interval: Nanoseconds
  private let tolerance: Nanoseconds

  /// At least 1 a second.
  init(perSecond: Int) {
    let rate = Nanoseconds(max(1, perSecond))
    interval = max(1, 1_000_000_000 / rate)
    tolerance = interval * (rate - 1)
  }

  /// Counts one more, and returns nil; or returns the nanoseconds after which there is room for it.
  ///
  /// The state begins as 0 or any other time that has passed.
  func take(_ state: inout Nanoseconds, at now: Nanoseconds) -> Nanoseconds? {
    let full = max(state, now)
    let excess = full - now - tolerance
    guard excess <= 0 else { return excess }
    state = full + interval
    return nil
  }
}
