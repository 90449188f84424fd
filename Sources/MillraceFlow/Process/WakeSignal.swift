internal import MillraceCore

/// Lets one thread sleep until another wakes it. A signal sent while no thread sleeps is kept for the next wait.
final class WakeSignal: Sendable {
  /// 1 from a signal to the next wait.
  private let signalled = Futex()

  /// Ends a wait. Any thread; no allocation. A system call only for the first signal since the last wait.
  func signal() {
    if signalled.exchange(1) == 0 { signalled.wake() }
  }

  /// Sleeps until the next signal; may return early.
  func wait() {
    if signalled.exchange(0) == 1 { return }
    signalled.wait(while: 0)
    _ = signalled.exchange(0)
  }
}
