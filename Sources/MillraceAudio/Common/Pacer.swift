internal import MillraceCore

/// Maps sample positions to the graph clock: position p is due at the time of the first call plus p / rate.
///
/// Every time is computed from its position, never accumulated, so nothing drifts. No allocation.
struct Pacer {
  /// Samples per second.
  let rate: Int
  /// True: packets wait until they are due. False: they are only stamped.
  let paces: Bool
  private var start: Nanoseconds?

  init(rate: Int, paces: Bool) {
    self.rate = rate
    self.paces = paces
  }

  /// The time of a position; the first call places position 0 at the present.
  mutating func time(of position: Int64, now: Nanoseconds) -> Nanoseconds {
    let begin = start ?? now
    start = begin
    return begin &+ .samples(position, rate: rate)
  }

  /// If the packet at a position must wait, requests a call at its time and returns true.
  mutating func mustWait(for position: Int64, _ ports: inout Ports) -> Bool {
    guard paces else { return false }
    let due = time(of: position, now: ports.now)
    guard due > ports.now else { return false }
    ports.wake(at: due)
    return true
  }
}
