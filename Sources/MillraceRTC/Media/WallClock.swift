internal import Glibc
internal import MillraceCore
internal import MillraceRTCWire

/// The time of day at a time of the monotonic clock, for sender reports. It is compared with the system's once: a clock that is set while a
/// session runs would move the sound against the pictures.
enum WallClock {
  private static let offset: Nanoseconds = {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Nanoseconds(time.tv_sec) * 1_000_000_000 + Nanoseconds(time.tv_nsec) - Clock(.realtime).now
  }()

  static func ntp(at now: Nanoseconds) -> NTPTime { NTPTime(unixNanoseconds: now &+ offset) }
}
