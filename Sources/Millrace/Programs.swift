internal import MillraceCore
internal import MillraceFlow

/// The programs that nodes of this process have started (`process.pipe`) and that have not ended yet.
///
/// A program whose node is gone gets SIGTERM, and SIGKILL a second later; that takes a live process. Before your program
/// ends, call `wait`.
public enum Programs {
  /// How many there are. Any thread.
  public static var count: Int { RunningPrograms.count }

  /// Blocks until there are none, or until the time is up. True when there are none.
  @discardableResult
  public static func wait(atMost time: Duration) -> Bool {
    RunningPrograms.wait(atMost: time.nanoseconds)
  }

  /// Sends SIGKILL to all of them, and to what they started in their process groups. Waits for nothing. May be called in a
  /// signal handler when `count` was read before the handler was installed.
  public static func killAll() { RunningPrograms.killAll() }
}
