internal import CMillraceSys
internal import Glibc
internal import MillraceCore

/// The clock of a device of our own: so many frames a second, a little faster or slower than said.
///
/// Here sleeping is the work: nothing else tells when a frame's time has come. Times are absolute, so that a thread that woke late is
/// not late the next time. A device that is to end ends with the block it waits for.
struct OwnPace {
  private let start = millrace_monotonic_ns()
  private let period: Double

  /// - Parameter skew: how much faster than `rate` it runs, in parts per million.
  init(rate: Int, skew: Double) { period = 1e9 / (Double(rate) * (1 + skew * 1e-6)) }

  /// Sleeps until a position is reached.
  func wait(for position: Int64) {
    let due = start &+ Nanoseconds(Double(position) * period)
    var time = timespec(tv_sec: Int(due / 1_000_000_000), tv_nsec: Int(due % 1_000_000_000))
    while unsafe clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil) == EINTR {}
  }
}
