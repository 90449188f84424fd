internal import NIOCore
internal import Synchronization

/// Lets work onto an event loop as long as the loop has a thread. Any thread.
final class LoopGate: Sendable {
  private let isOpen = Mutex(true)

  /// Runs `body` on the loop. After `close` it does nothing.
  func execute(on loop: any EventLoop, _ body: @escaping @Sendable () -> Void) {
    // Under the lock, so that the loop does not end in between.
    isOpen.withLock { if $0 { loop.execute(body) } }
  }

  func close() { isOpen.withLock { $0 = false } }
}
