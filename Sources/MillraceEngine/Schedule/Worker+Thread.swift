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
  struct Seat: @unchecked Sendable {
    let number: Int
    let call: UnsafeMutablePointer<Atomic<UInt>>
  }

  private func startThread(number: Int) -> Int32 {
    let slot = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe slot.initialize(to: Atomic(0))
    let seat = unsafe Seat(number: number, call: slot)
    callSlot.store(UInt(bitPattern: slot), ordering: .sequentiallyConsistent)
    return OwnThread.start(name) { [self] in
      if nice != 0 { _ = millrace_set_thread_nice(nice) }
      millrace_set_timer_slack(1_000)
      anchor()
      loop(seat)
    }
  }

  /// The cell that is in a call, as its address; 0: none. Any thread.
  var cellInCall: UInt {
    let slot = unsafe UnsafePointer<Atomic<UInt>>(bitPattern: callSlot.load(ordering: .acquiring))
    return unsafe slot?.pointee.load(ordering: .sequentiallyConsistent) ?? 0
  }

  /// Gives the worker a new thread when the old one is still in the call it was seen in. The old thread's call goes on, but
  /// nothing follows it. False when the call returned after all.
  func replaceThread(stuckIn cell: UInt) -> Bool {
    guard canReplaceThreads else { return false }
    let number = owner.load(ordering: .sequentiallyConsistent)
    owner.store(-number, ordering: .sequentiallyConsistent)
    // After this the thread has either left the call visibly, or will find the worker contested when it does. Then both
    // sides try to settle it, and one succeeds.
    millrace_barrier_all_threads()
    let isStuck = cellInCall == cell
    let (settled, _) = owner.compareExchange(
      expected: -number, desired: isStuck ? number + 1 : number, ordering: .sequentiallyConsistent)
    guard settled && isStuck else { return false }
    return startThread(number: number + 1) == 0
  }

  // MARK: Calls into nodes

  /// Notes that the thread enters a node. Plain stores: who replaces the thread makes all threads pass a barrier.
  @inline(__always)
  func enter(_ cell: UnsafeMutablePointer<Cell>, _ seat: Seat) {
    unsafe seat.call.pointee.store(UInt(bitPattern: cell), ordering: .relaxed)
    millrace_compiler_barrier()
  }

  /// Notes that the thread is back. False when it was replaced meanwhile and must not touch anything any more.
  @inline(__always)
  func leave(_ seat: Seat) -> Bool {
    millrace_compiler_barrier()
    unsafe seat.call.pointee.store(0, ordering: .relaxed)
    millrace_compiler_barrier()
    return owner.load(ordering: .relaxed) == seat.number || keepsWorker(seat)
  }

  /// The worker is contested or taken: true when this thread wins it back.
  @inline(never)
  private func keepsWorker(_ seat: Seat) -> Bool {
    owner.compareExchange(expected: -seat.number, desired: seat.number, ordering: .sequentiallyConsistent)
      .exchanged
  }
}
