/// Counts the seconds in which a client that has to send audio sends none.
///
/// A second is a tick of a timer of this process, not a difference of two times: time in which the machine suspended the double, together
/// with everything the client has sent meanwhile, is not the client's fault.
public struct QuietSeconds: Sendable, Hashable {
  private var count = 0

  /// Counts from 0.
  public init() {}

  /// Call once a second.
  /// - Parameters:
  ///   - isDue: audio is expected.
  ///   - limit: the seconds allowed.
  /// - Returns: true when the limit is exceeded.
  public mutating func tick(isDue: Bool, limit: Int) -> Bool {
    count = isDue ? count + 1 : 0
    return count > limit
  }

  /// Call when audio arrives, or is no longer expected.
  public mutating func reset() { count = 0 }
}
