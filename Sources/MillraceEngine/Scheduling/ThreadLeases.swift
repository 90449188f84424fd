internal import CMillraceSys
internal import Synchronization

/// A thread's ownership of its worker: its number, and its own slot for the cell it is calling. A replaced thread keeps its slot
/// forever, so that when it returns it cannot write to its successor's.
@safe
struct ThreadLease: @unchecked Sendable {
  let number: Int
  fileprivate let call: UnsafeMutablePointer<Atomic<UInt>>

  /// Frees the slot of a thread that never got the worker.
  func discard() { unsafe call.deallocate() }
}

/// Which thread owns a worker, and which cell that thread is calling.
///
/// A thread that is stuck in a node loses its worker to another. Entering and leaving a node costs no locked operation: `revoke`
/// makes all threads of the process pass a barrier instead.
@safe
struct ThreadLeases: ~Copyable {
  /// The number of the thread that owns the worker; its negative while the lease is contested.
  private let owner = Atomic<Int>(0)
  /// The address of the slot in which the owner records the cell it is calling.
  private let callSlot = Atomic<UInt>(0)

  /// The address of the cell being called; 0: none. Any thread.
  var cellInCall: UInt {
    let slot = unsafe UnsafePointer<Atomic<UInt>>(bitPattern: callSlot.load(ordering: .acquiring))
    return unsafe slot?.pointee.load(ordering: .sequentiallyConsistent) ?? 0
  }

  // MARK: Control side

  /// The lease of the first thread, which owns the worker at once.
  func makeFirst() -> ThreadLease {
    let lease = makeNext()
    owner.store(lease.number, ordering: .sequentiallyConsistent)
    activate(lease)
    return lease
  }

  /// A lease for the thread that would own the worker next.
  func makeNext() -> ThreadLease {
    let slot = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe slot.initialize(to: Atomic(0))
    return unsafe ThreadLease(number: owner.load(ordering: .sequentiallyConsistent) + 1, call: slot)
  }

  /// The lease's thread owns the worker: its slot counts from now on.
  func activate(_ lease: ThreadLease) {
    unsafe callSlot.store(UInt(bitPattern: lease.call), ordering: .sequentiallyConsistent)
  }

  /// Takes the worker from a thread that is still in a call of this cell. False when the call returned after all.
  func revoke(stuckIn cell: UInt) -> Bool {
    let number = owner.load(ordering: .sequentiallyConsistent)
    owner.store(-number, ordering: .sequentiallyConsistent)
    // After the barrier the thread has either visibly left the call, or will find the lease contested when it does. Then both
    // sides compete with a compare-exchange, and one wins.
    millrace_barrier_all_threads()
    let isStuck = cellInCall == cell
    let (settled, _) = owner.compareExchange(
      expected: -number, desired: isStuck ? number + 1 : number, ordering: .sequentiallyConsistent)
    return settled && isStuck
  }

  // MARK: On the owner's thread

  /// Records that the thread enters a node.
  ///
  /// Releasing: the thread may pass the barrier of `revoke` before it gets here, and the thread that sees the cell takes over
  /// everything this one has written, including ready words and timers. On x86 it is a plain store.
  @inline(__always)
  func enter(_ cell: UnsafeMutablePointer<Cell>, _ lease: ThreadLease) {
    unsafe lease.call.pointee.store(UInt(bitPattern: cell), ordering: .releasing)
    millrace_compiler_barrier()
  }

  /// Records that the thread has returned. False when it was replaced meanwhile and must not touch anything any more.
  @inline(__always)
  func leave(_ lease: ThreadLease) -> Bool {
    millrace_compiler_barrier()
    unsafe lease.call.pointee.store(0, ordering: .relaxed)
    millrace_compiler_barrier()
    return owner.load(ordering: .relaxed) == lease.number || reclaim(lease)
  }

  /// The lease is contested or revoked: true when this thread wins it back.
  @inline(never)
  private func reclaim(_ lease: ThreadLease) -> Bool {
    owner.compareExchange(expected: -lease.number, desired: lease.number, ordering: .sequentiallyConsistent)
      .exchanged
  }
}
