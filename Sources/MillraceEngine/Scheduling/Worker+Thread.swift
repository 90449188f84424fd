internal import CMillraceSys
internal import MillraceCore
internal import Synchronization

/// The thread of a worker, and its replacement when it is stuck in a node.
extension Worker {
  /// Starts the worker's first thread; 0, or the `errno` of the system's refusal.
  func startThread() -> Int32 {
    owner.store(1, ordering: .sequentiallyConsistent)
    return startThread(number: 1)
  }

  /// A thread's ownership of the worker: its number, and its own slot for the cell it is calling. A replaced thread keeps its slot
  /// forever, so that when it returns it cannot write to its successor's.
  @safe
  struct ThreadLease: @unchecked Sendable {
    let number: Int
    let call: UnsafeMutablePointer<Atomic<UInt>>
  }

  private func startThread(number: Int) -> Int32 {
    let lease = makeLease(number: number)
    unsafe callSlot.store(UInt(bitPattern: lease.call), ordering: .sequentiallyConsistent)
    return DetachedThread.start(name) { [self] in work(lease) }
  }

  private func makeLease(number: Int) -> ThreadLease {
    let slot = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe slot.initialize(to: Atomic(0))
    return unsafe ThreadLease(number: number, call: slot)
  }

  private func work(_ lease: ThreadLease) {
    threadOwner.bind()
    if nice != 0 { _ = millrace_set_thread_nice(nice) }
    millrace_set_timer_slack(1_000)
    anchor()
    loop(lease)
  }

  /// The address of the cell being called; 0: none. Any thread.
  var cellInCall: UInt {
    let slot = unsafe UnsafePointer<Atomic<UInt>>(bitPattern: callSlot.load(ordering: .acquiring))
    return unsafe slot?.pointee.load(ordering: .sequentiallyConsistent) ?? 0
  }

  /// The outcome of replacing a stuck thread.
  enum Replacement: Equatable {
    /// The worker has a new thread.
    case done
    /// The call returned after all, or the kernel has no barrier: the worker keeps its thread.
    case kept
    /// The system refused a thread, with this `errno`: the worker keeps its thread, which is still in the call.
    case refused(Int32)
  }

  /// Gives the worker a new thread if the old one is still in the given call. The old call continues, but that thread does nothing
  /// after it. Control side.
  func replaceThread(stuckIn cell: UInt) -> Replacement {
    guard canReplaceThreads else { return .kept }
    // The new thread is started before the old one loses the worker, which must never be without a thread.
    let lease = makeLease(number: owner.load(ordering: .sequentiallyConsistent) + 1)
    let standby = StandbyDecision()
    let refusal = DetachedThread.start(name) { [self] in
      if standby.waitUntilDecided() { work(lease) }
    }
    guard refusal == 0 else {
      unsafe lease.call.deallocate()
      return .refused(refusal)
    }
    let isTaken = revokeLease(stuckIn: cell)
    if isTaken {
      unsafe callSlot.store(UInt(bitPattern: lease.call), ordering: .sequentiallyConsistent)
    } else {
      unsafe lease.call.deallocate()
    }
    standby.decide(isNeeded: isTaken)
    return isTaken ? .done : .kept
  }

  /// Revokes the lease of a thread that is still in a call. False when the call returned after all.
  private func revokeLease(stuckIn cell: UInt) -> Bool {
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

  // MARK: Calls into nodes

  /// Records that the thread enters a node. No locked operation: replacing the thread makes all threads pass a barrier.
  ///
  /// Releasing: the thread may pass that barrier before it gets here, and the thread that sees the cell takes over everything this
  /// one has written, including ready words and timers. On x86 it is a plain store.
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
    return owner.load(ordering: .relaxed) == lease.number || reclaimsWorker(lease)
  }

  /// The lease is contested or revoked: true when this thread wins it back.
  @inline(never)
  private func reclaimsWorker(_ lease: ThreadLease) -> Bool {
    owner.compareExchange(expected: -lease.number, desired: lease.number, ordering: .sequentiallyConsistent)
      .exchanged
  }
}

/// Tells a standby thread whether it is needed. Decided once; the thread sleeps until then.
private final class StandbyDecision: Sendable {
  private static let needed: UInt32 = 1
  private static let notNeeded: UInt32 = 2

  /// 0 until decided.
  private let decision = Futex()

  func decide(isNeeded: Bool) {
    decision.store(isNeeded ? Self.needed : Self.notNeeded)
    decision.wake()
  }

  /// Waits for the decision; true when the thread is needed.
  func waitUntilDecided() -> Bool {
    while true {
      let value = decision.load()
      if value != 0 { return value == Self.needed }
      decision.wait(while: 0)
    }
  }
}
