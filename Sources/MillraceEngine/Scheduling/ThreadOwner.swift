internal import Glibc
internal import Synchronization

/// The thread that owns some state. Debug builds check that no other thread uses the state; release builds check nothing.
///
/// A thread calls `bind` before it uses the state, and a thread that takes over calls it again. Functions that only the owner may call
/// begin with `assertIsCurrent`. Before the first `bind` there is no owner, and every thread passes.
struct ThreadOwner: ~Copyable {
  /// The owner as pthreads identifies it; 0: none yet.
  private let thread = Atomic<UInt>(0)
  /// The role of the owner, for the message.
  private let role: StaticString

  /// An owner that is not bound to a thread yet.
  init(_ role: StaticString) { self.role = role }

  /// Makes the calling thread the owner.
  borrowing func bind() { thread.store(UInt(pthread_self()), ordering: .releasing) }

  /// Traps in debug builds when another thread than the owner calls.
  @inline(__always)
  borrowing func assertIsCurrent(_ function: StaticString = #function) {
    assert(isCurrent, "\(function) must be called on the thread of the \(role)")
  }

  private var isCurrent: Bool {
    let owner = thread.load(ordering: .acquiring)
    return owner == 0 || owner == UInt(pthread_self())
  }
}
