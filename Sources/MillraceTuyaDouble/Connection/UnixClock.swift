internal import Glibc

/// The time of this machine since 1970, as packets carry it.
enum UnixClock {
  static var milliseconds: UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec / 1_000_000)
  }

  static var seconds: Int { Int(milliseconds / 1_000) }
}
