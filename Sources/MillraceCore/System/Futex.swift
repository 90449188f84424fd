internal import CMillraceSys
internal import Synchronization

/// A 32-bit word that threads can sleep on until another thread changes it: futex(2) and an atomic on the same memory.
///
/// The owner defines what its values mean. Changing the word and waking the sleepers are separate calls, so a change without a
/// sleeper costs no system call. Any thread; no allocation after creation.
@safe
package struct Futex: ~Copyable, @unchecked Sendable {
  private let word: UnsafeMutablePointer<UInt32>

  /// Starts at 0.
  package init() {
    unsafe word = .allocate(capacity: 1)
    unsafe word.initialize(to: 0)
  }

  deinit { unsafe word.deallocate() }

  private var atomic: UnsafeMutablePointer<Atomic<UInt32>> {
    // The kernel and the atomic use the same 32 bits.
    unsafe UnsafeMutableRawPointer(word).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// The current value.
  package func load() -> UInt32 { unsafe atomic.pointee.load(ordering: .sequentiallyConsistent) }

  /// Sets the value.
  package func store(_ value: UInt32) {
    unsafe atomic.pointee.store(value, ordering: .sequentiallyConsistent)
  }

  /// Sets the value and returns the previous one.
  package func exchange(_ value: UInt32) -> UInt32 {
    unsafe atomic.pointee.exchange(value, ordering: .sequentiallyConsistent)
  }

  /// Wakes at most `count` sleeping threads.
  package func wake(_ count: Int32 = 1) { unsafe millrace_futex_wake(word, count) }

  /// Sleeps while the word equals `value`, at most `time` nanoseconds; -1: without a limit. May return early.
  package func wait(while value: UInt32, for time: Nanoseconds = -1) {
    _ = unsafe millrace_futex_wait(word, value, time)
  }
}
