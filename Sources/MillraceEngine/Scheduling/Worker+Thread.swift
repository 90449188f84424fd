internal import CMillraceSys
internal import MillraceCore
internal import Synchronization

/// Which thread a worker has, and how one that is stuck in a node is replaced.
extension Worker {
  /// Starts the worker's first thread; 0, or the `errno` of the system's refusal.
  func startThread() -> Int32 {
    owner.store(1, ordering: .sequentiallyConsistent)
    return startThread(number: 1)
  }

  /// A thread's right to the worker: its number, and a slot of its own for the cell it is calling. A thread that was replaced
  /// keeps its slot for good, so that coming back it cannot touch its successor's.
  @safe
  struct ThreadLease: @unchecked Sendable {
    let number: Int
    let call: UnsafeMutablePointer<Atomic<UInt>>
  }

  private func startThread(number: Int) -> Int32 {
    let lease = makeLease(number: number)
    unsafe callSlot.store(UInt(bitPattern: lease.call), ordering: .sequentiallyConsistent)
    return OwnThread.start(name) { [self] in work(lease) }
  }

  private func makeLease(number: Int) -> ThreadLease {
    let slot = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe slot.initialize(to: Atomic(0))
    return unsafe ThreadLease(number: number, call: slot)
  }

  private func work(_ lease: ThreadLease) {
    if nice != 0 { _ = millrace_set_thread_nice(nice) }
    millrace_set_timer_slack(1_000)
    anchor()
    loop(lease)
  }

  /// The cell that is in a call, as its address; 0: none. Any thread.
  var cellInCall: UInt {
    let slot = unsafe UnsafePointer<Atomic<UInt>>(bitPattern: callSlot.load(ordering: .acquiring))
    return unsafe slot?.pointee.load(ordering: .sequentiallyConsistent) ?? 0
  }

  /// What became of a worker whose thread is stuck.
  enum Replacement: Equatable {
    /// It has a new thread.
    case done
    /// The call returned after all, or the kernel knows no barrier: it has its old one.
    case kept
    /// The system gives no thread, an `errno`: it has its old one, which is still in the call.
    case refused(Int32)
  }

  /// Gives the worker a new thread when the old one is still in the call it was seen in. The old thread's call goes on, but
  /// nothing follows it. Control side.
  func replaceThread(stuckIn cell: UInt) -> Replacement {
    guard canReplaceThreads else { return .kept }
    // The new thread is there before the old one loses the worker: nobody may be left without one.
    let lease = makeLease(number: owner.load(ordering: .sequentiallyConsistent) + 1)
    let standby = StandbyDecision()
    let refusal = OwnThread.start(name) { [self] in
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

  /// Takes the worker from a thread that is still in a call. False when the call returned after all.
  private func revokeLease(stuckIn cell: UInt) -> Bool {
    let number = owner.load(ordering: .sequentiallyConsistent)
    owner.store(-number, ordering: .sequentiallyConsistent)
    // After this the thread has either left the call visibly, or will find the worker contested when it does. Then both
    // sides try to settle it, and one succeeds.
    millrace_barrier_all_threads()
    let isStuck = cellInCall == cell
    let (settled, _) = owner.compareExchange(
      expected: -number, desired: isStuck ? number + 1 : number, ordering: .sequentiallyConsistent)
    return settled && isStuck
  }

  // MARK: Calls into nodes

  /// Notes that the thread enters a node. No locked operation: who replaces the thread makes all threads pass a barrier.
  ///
  /// Releasing: the thread may have passed that barrier before it got here, and whoever sees the cell takes over all that this thread has
  /// written, the ready words and the timers too. On x86 it is the store it was.
  @inline(__always)
  func enter(_ cell: UnsafeMutablePointer<Cell>, _ lease: ThreadLease) {
    unsafe lease.call.pointee.store(UInt(bitPattern: cell), ordering: .releasing)
    millrace_compiler_barrier()
  }

  /// Notes that the thread is back. False when it was replaced meanwhile and must not touch anything any more.
  @inline(__always)
  func leave(_ lease: ThreadLease) -> Bool {
    millrace_compiler_barrier()
    unsafe lease.call.pointee.store(0, ordering: .relaxed)
    millrace_compiler_barrier()
    return owner.load(ordering: .relaxed) == lease.number || reclaimsWorker(lease)
  }

  /// The worker is contested or taken: true when this thread wins it back.
  @inline(never)
  private func reclaimsWorker(_ lease: ThreadLease) -> Bool {
    owner.compareExchange(expected: -lease.number, desired: lease.number, ordering: .sequentiallyConsistent)
      .exchanged
  }
}

/// Tells a thread that stands by whether it is wanted. Decided once; the thread sleeps until then.
private final class StandbyDecision: Sendable {
  private static let needed: UInt32 = 1
  private static let notNeeded: UInt32 = 2

  /// 0 until it is decided.
  private let decision = WaitWord()

  func decide(isNeeded: Bool) {
    decision.store(isNeeded ? Self.needed : Self.notNeeded)
    decision.wake()
  }

  /// Waits for the decision.
  func waitUntilDecided() -> Bool {
    while true {
      let value = decision.load()
      if value != 0 { return value == Self.needed }
      decision.wait(while: 0)
    }
  }
}
