internal import CMillraceSys
internal import Synchronization

/// A word that threads sleep on until another one has changed it: futex(2) and an atomic on the same 32 bits.
///
/// What its values mean is up to its owner. Who changes it wakes the sleepers by a call of its own, so a change that nobody waits
/// for costs no system call. Any thread; no allocation once it is made.
@safe
package struct WaitWord: ~Copyable, @unchecked Sendable {
  private let word: UnsafeMutablePointer<UInt32>

  /// Begins at 0.
  package init() {
    unsafe word = .allocate(capacity: 1)
    unsafe word.initialize(to: 0)
  }

  deinit { unsafe word.deallocate() }

  private var atomic: UnsafeMutablePointer<Atomic<UInt32>> {
    // The kernel and the atomic look at the same 32 bits.
    unsafe UnsafeMutableRawPointer(word).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// The value now.
  package func load() -> UInt32 { unsafe atomic.pointee.load(ordering: .sequentiallyConsistent) }

  /// Changes the value.
  package func store(_ value: UInt32) {
    unsafe atomic.pointee.store(value, ordering: .sequentiallyConsistent)
  }

  /// Changes the value; the one before.
  package func exchange(_ value: UInt32) -> UInt32 {
    unsafe atomic.pointee.exchange(value, ordering: .sequentiallyConsistent)
  }

  /// Ends the waits of at most so many threads.
  package func wake(_ count: Int32 = 1) { unsafe millrace_futex_wake(word, count) }

  /// Sleeps while the value is this one, for so many nanoseconds at most; -1: for as long as it takes. May return early.
  package func wait(while value: UInt32, for time: Nanoseconds = -1) {
    _ = unsafe millrace_futex_wait(word, value, time)
  }
}
