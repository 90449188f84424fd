internal import Glibc

/// A lock for the control side. No worker takes one while it processes packets.
///
/// It is a POSIX mutex rather than `Synchronization.Mutex`, because ThreadSanitizer does not understand the latter: every test
/// with two threads would report false races.
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

/// A value that can be accessed only while holding its lock.
@safe
package final class Locked<Value>: @unchecked Sendable {
  private let lock = Lock()
  private var value: Value

  package init(_ value: Value) { self.value = value }

  /// Runs `body` with exclusive access to the value. Must not be nested on the same value.
  package func withLock<Answer, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Answer
  ) throws(Failure) -> Answer {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
