internal import Glibc
public import MillraceCore

/// The date and time of this machine, for signatures and expiries. It may jump: for durations there is `Clock`.
public enum UnixTime {
  /// Nanoseconds since 1970.
  public static var now: Nanoseconds {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Nanoseconds(time.tv_sec) * 1_000_000_000 + Nanoseconds(time.tv_nsec)
  }

  /// Whole seconds since 1970.
  public static var seconds: Int { Int(now / 1_000_000_000) }
}
