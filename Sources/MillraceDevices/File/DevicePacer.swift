internal import CMillraceSys
internal import Glibc
internal import MillraceCore

/// The clock of the device `file`: a fixed number of frames a second, with an optional skew.
///
/// This thread sleeps on purpose: nothing else signals when a frame is due. Deadlines are absolute, so a late wake-up does not delay the
/// next one. A device asked to stop finishes the block it is waiting for.
struct DevicePacer {
  private let start = millrace_monotonic_ns()
  private let period: Double

  /// - Parameter skew: how much faster than `rate` the clock runs, in parts per million.
  init(rate: Int, skew: Double) { period = 1e9 / (Double(rate) * (1 + skew * 1e-6)) }

  /// Sleeps until the clock reaches `position`.
  func wait(for position: Int64) {
    let due = start &+ Nanoseconds(Double(position) * period)
    var time = timespec(tv_sec: Int(due / 1_000_000_000), tv_nsec: Int(due % 1_000_000_000))
    while unsafe clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil) == EINTR {}
  }
}
