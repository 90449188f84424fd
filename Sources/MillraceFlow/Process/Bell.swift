internal import CMillraceSys
internal import Synchronization

/// Lets one thread sleep until another one rings. A ring while nobody sleeps is kept for the next wait.
@safe
final class Bell: @unchecked Sendable {
  private let word: UnsafeMutablePointer<UInt32>

  init() {
    unsafe word = .allocate(capacity: 1)
    unsafe word.initialize(to: 0)
  }

  deinit { unsafe word.deallocate() }

  private var rung: UnsafeMutablePointer<Atomic<UInt32>> {
    // The kernel and the atomic look at the same 32 bits.
    unsafe UnsafeMutableRawPointer(word).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// Ends a wait. Any thread; no allocation. Costs a system call only for the first ring since the last wait.
  func ring() {
    guard unsafe rung.pointee.exchange(1, ordering: .acquiringAndReleasing) == 0 else { return }
    unsafe millrace_futex_wake(word, 1)
  }

  /// Sleeps until the next ring; may return early.
  func wait() {
    if unsafe rung.pointee.exchange(0, ordering: .acquiringAndReleasing) == 1 { return }
    _ = unsafe millrace_futex_wait(word, 0, -1)
    _ = unsafe rung.pointee.exchange(0, ordering: .acquiringAndReleasing)
  }
}
