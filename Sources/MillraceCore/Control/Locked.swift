internal import Glibc

/// A lock of the control side. No worker takes one while it carries packets.
///
/// A POSIX mutex and not `Synchronization.Mutex`, because the thread sanitizer does not see what the latter orders: every
/// test with two threads at it would report races that are none.
@safe
package final class Lock: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  package init() {
    unsafe mutex.initialize(to: pthread_mutex_t())
    _ = unsafe pthread_mutex_init(mutex, nil)
  }

  package func lock() { _ = unsafe pthread_mutex_lock(mutex) }
  package func unlock() { _ = unsafe pthread_mutex_unlock(mutex) }

  deinit {
    _ = unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deinitialize(count: 1)
    unsafe mutex.deallocate()
  }
}

/// A value that only the holder of its lock can touch.
@safe
package final class Locked<Value>: @unchecked Sendable {
  private let lock = Lock()
  private var value: Value

  package init(_ value: Value) { self.value = value }

  /// Runs `body` with the value, alone. Not to be nested on the same value.
  package func withLock<Answer, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Answer
  ) throws(Failure) -> Answer {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
