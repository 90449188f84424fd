internal import MillraceCore

/// Ties sample positions to the graph clock: position p is due at the first call's time plus p / rate.
///
/// Every time is computed from its position, never added up, so that nothing drifts. No allocation.
struct Pacer {
  /// Samples a second.
  let rate: Int
  /// True: packets wait until they are due. False: the times are only written on them.
  let paces: Bool
  private var start: Nanoseconds?

  init(rate: Int, paces: Bool) {
    self.rate = rate
    self.paces = paces
  }

  /// The time of a position; the first question fixes position 0 at the present.
  mutating func time(of position: Int64, now: Nanoseconds) -> Nanoseconds {
    let begin = start ?? now
    start = begin
    return begin &+ .samples(position, rate: rate)
  }

  /// When the packet at a position has to wait, asks for a call at its time and answers true.
  mutating func mustWait(for position: Int64, _ ports: inout Ports) -> Bool {
    guard paces else { return false }
    let due = time(of: position, now: ports.now)
    guard due > ports.now else { return false }
    ports.wake(at: due)
    return true
  }
}
