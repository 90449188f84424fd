internal import MillraceCore
internal import MillraceFlow

/// The running child processes that nodes of this process have started (`process.pipe`).
///
/// When its node is removed, a program gets SIGTERM, and SIGKILL a second later. Both are sent by this process, so call `wait` before it
/// ends.
public enum Programs {
  /// The number of running programs. Any thread.
  public static var count: Int { RunningPrograms.count }

  /// Blocks until no program is running or the time is up. Returns true when none is running.
  @discardableResult
  public static func wait(atMost time: Duration) -> Bool {
    RunningPrograms.wait(atMost: time.nanoseconds)
  }

  /// Sends SIGKILL to the process groups of all running programs, without waiting. Async-signal-safe, provided `count` was read before
  /// the handler was installed.
  public static func killAll() { RunningPrograms.killAll() }
}
