internal import MillraceCore

/// Lets one thread sleep until another one rings. A ring while nobody sleeps is kept for the next wait.
final class Bell: Sendable {
  /// 1 from a ring to the next wait.
  private let rung = WaitWord()

  /// Ends a wait. Any thread; no allocation. Costs a system call only for the first ring since the last wait.
  func ring() {
    if rung.exchange(1) == 0 { rung.wake() }
  }

  /// Sleeps until the next ring; may return early.
  func wait() {
    if rung.exchange(0) == 1 { return }
    rung.wait(while: 0)
    _ = rung.exchange(0)
  }
}
