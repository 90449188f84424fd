internal import CMillraceSys
internal import MillraceCore
internal import Synchronization

/// One answer that one thread gives and another one waits for, bounded in time.
@safe
final class Answer<Value: Sendable>: @unchecked Sendable {
  private let word: UnsafeMutablePointer<UInt32>
  private let value = Locked<Value?>(nil)

  init() {
    unsafe word = .allocate(capacity: 1)
    unsafe word.initialize(to: 0)
  }

  deinit { unsafe word.deallocate() }

  private var given: UnsafeMutablePointer<Atomic<UInt32>> {
    // The kernel and the atomic look at the same 32 bits.
    unsafe UnsafeMutableRawPointer(word).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  /// Gives the answer. The first one counts.
  func give(_ answer: Value) {
    value.withLock { if $0 == nil { $0 = answer } }
    unsafe given.pointee.store(1, ordering: .releasing)
    unsafe millrace_futex_wake(word, 1)
  }

  /// True once it was given.
  var isGiven: Bool { unsafe given.pointee.load(ordering: .acquiring) != 0 }

  /// Waits; nil when the time is up.
  func wait(_ time: Nanoseconds) -> Value? {
    let end = millrace_monotonic_ns() + time
    while unsafe given.pointee.load(ordering: .acquiring) == 0 {
      let left = end - millrace_monotonic_ns()
      guard left > 0 else { return nil }
      _ = unsafe millrace_futex_wait(word, 0, left)
    }
    return value.withLock { $0 }
  }
}
