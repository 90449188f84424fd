internal import Glibc
internal import Synchronization

/// Requests that must still be sent after their node has ended, such as the one that closes a session which is billed. A program waits for
/// them before it exits; `MillraceCommand` does. Any thread.
public enum LastRequests {
  private static let count = Atomic<Int>(0)

  /// How many there are.
  public static var pending: Int { count.load(ordering: .sequentiallyConsistent) }

  /// One more has to be waited for, until `end`.
  public static func begin() { count.add(1, ordering: .sequentiallyConsistent) }

  /// One has arrived, or never will.
  public static func end() { count.subtract(1, ordering: .sequentiallyConsistent) }

  /// Waits until there are none. Blocks the caller's thread, which must not be a network thread.
  /// - Parameter milliseconds: the longest wait.
  /// - Returns: false when some are left.
  @discardableResult
  public static func wait(atMost milliseconds: Int) -> Bool {
    var left = milliseconds
    while pending > 0, left > 0 {
      usleep(10_000)
      left -= 10
    }
    return pending == 0
  }
}
