internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import Synchronization

/// One thread that runs strands: its inbox, its ready queue, its timer wheel, its clock.
///
/// The loop takes what others posted, runs one strand for at most a budget of calls, looks at the timers, and sleeps on a futex
/// until the next millisecond in which a timer is due. On a virtual clock it never sleeps while a timer is armed: it moves the
/// clock to the earliest deadline instead.
///
/// A worker whose thread is stuck in a node can be given a new thread (`replaceThread`); the old one finds out as soon as the
/// node returns, and ends without touching anything.
@safe
final class Worker: @unchecked Sendable {
  /// Calls one strand may make before others get their turn.
  static let budget = 64

  let name: String
  let isVirtual: Bool
  /// Added to the thread's niceness; the bulk worker stands back behind voice.
  private let nice: Int32
  let trace = TraceRing()

  // Shared with other threads.
  private let inbox = Inbox()
  private let sleepWord: UnsafeMutablePointer<UInt32>
  private let sleeping: UnsafeMutablePointer<Atomic<UInt32>>
  private let isStopping = Atomic<Bool>(false)
  /// Which thread owns the worker: a thread that finds another number here has been replaced, its own
  /// negated means that is being decided.
  private let owner = Atomic<Int>(0)
  /// Where the present thread notes the cell it is calling: the address of its slot.
  private let callSlot = Atomic<UInt>(0)
  /// False where the kernel cannot make all threads pass a barrier: a stuck thread then keeps its worker.
  private let canReplaceThreads: Bool
  /// Strands of running graphs, for choosing the least loaded worker.
  let load = Atomic<Int>(0)
  /// Ticks spent in strands, for the load of the worker.
  let busyTicks = Counter()

  // Owned by the thread.
  @exclusivity(unchecked) private var ready = ReadyQueue()
  @exclusivity(unchecked) var wheel: TimerWheel
  @exclusivity(unchecked) private var virtualNow: Nanoseconds = 0
  @exclusivity(unchecked) private var anchorTicks: UInt64 = 0
  @exclusivity(unchecked) private var anchorTime: Nanoseconds = 0
  private let scale = TickScale.machine
  /// `virtualNow` for other threads.
  private let publishedNow = Atomic<Int64>(0)

  init(name: String, isVirtual: Bool, nice: Int32, canReplaceThreads: Bool) {
    self.canReplaceThreads = canReplaceThreads
    self.name = name
    self.isVirtual = isVirtual
    self.nice = nice
    unsafe sleepWord = .allocate(capacity: 1)
    unsafe sleepWord.initialize(to: 0)
    // The futex needs the plain word, the code the atomic view: the same four bytes.
    unsafe sleeping = UnsafeMutableRawPointer(sleepWord).assumingMemoryBound(to: Atomic<UInt32>.self)
    unsafe wheel = unsafe TimerWheel(now: isVirtual ? 0 : millrace_monotonic_ns())
  }

  deinit { unsafe sleepWord.deallocate() }

  // MARK: From any thread

  /// Queues a strand whose `scheduled` bit the caller just set. No lock; a system call only when the worker sleeps.
  func post(_ strand: Strand) {
    if inbox.push(strand) { wakeThread() }
  }

  private func wakeThread() {
    if unsafe sleeping.pointee.load(ordering: .sequentiallyConsistent) == 1 {
      if unsafe sleeping.pointee.exchange(0, ordering: .sequentiallyConsistent) == 1 {
        unsafe millrace_futex_wake(sleepWord, 1)
      }
    }
  }

  /// Starts the worker's first thread.
  func startThread() {
    owner.store(1, ordering: .sequentiallyConsistent)
    startThread(number: 1)
  }

  /// A thread's right to the worker: its number, and a slot of its own for the cell it is calling. A thread that was replaced
  /// keeps its slot for good, so that coming back it cannot touch its successor's.
  @safe
  struct Seat: @unchecked Sendable {
    let number: Int
    let call: UnsafeMutablePointer<Atomic<UInt>>
  }

  private func startThread(number: Int) {
    let slot = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe slot.initialize(to: Atomic(0))
    let seat = unsafe Seat(number: number, call: slot)
    callSlot.store(UInt(bitPattern: slot), ordering: .sequentiallyConsistent)
    startDetachedThread(name) { [self] in
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
    startThread(number: number + 1)
    return true
  }

  func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    wakeThread()
  }

  // MARK: Time

  /// Time on the worker's clock. On the worker's thread.
  var now: Nanoseconds {
    if isVirtual { return unsafe virtualNow }
    return time(at: TickScale.now)
  }

  /// Time on the worker's clock as other threads may read it: exact on the real clock, the last step on a virtual one.
  var controlTime: Nanoseconds {
    isVirtual ? Nanoseconds(publishedNow.load(ordering: .relaxed)) : millrace_monotonic_ns()
  }

  /// The clock's time at a tick count; exact to some 15 parts per million since the last anchor.
  @inline(__always)
  func time(at ticks: UInt64) -> Nanoseconds {
    if isVirtual { return unsafe virtualNow }
    // A count from before the anchor would wrap around to the far future.
    return unsafe ticks > anchorTicks ? anchorTime &+ scale.nanoseconds(ticks &- anchorTicks) : anchorTime
  }

  /// Ties ticks to the clock again. Done after every sleep and every few milliseconds of work.
  private func anchor() {
    unsafe anchorTicks = TickScale.now
    unsafe anchorTime = millrace_monotonic_ns()
  }

  // MARK: The loop

  private func loop(_ seat: Seat) {
    while !isStopping.load(ordering: .relaxed) {
      unsafe inbox.empty(into: &ready)
      expireTimers()
      guard let entry = unsafe ready.pop() else {
        rest()
        continue
      }
      let verdict = unsafe entry._withUnsafeGuaranteedRef { run($0, seat) }
      switch verdict {
      case .idle: break
      case .more: unsafe ready.push(entry)
      case .retired:
        // From here on the control side may free the strand: the run is told last, and held while it is told.
        let run = unsafe entry._withUnsafeGuaranteedRef { unsafe $0.run }
        withExtendedLifetime(run) { run.strandRetired() }
      case .replaced: return
      }
    }
  }

  private func expireTimers() {
    if isVirtual {
      while let cell = unsafe wheel.takeExactlyDue(now: virtualNow) { unsafe fire(cell) }
      return
    }
    if unsafe scale.nanoseconds(TickScale.now &- anchorTicks) > 4_000_000 { anchor() }
    let now = now
    while let cell = unsafe wheel.takeDue(now: now) { unsafe fire(cell) }
  }

  /// A cell's timer has come: the node is called if it had wished for that.
  private func fire(_ cell: UnsafeMutablePointer<Cell>) {
    if unsafe cell.pointee.hasWish {
      unsafe cell.pointee.hasWish = false
      unsafe cell.pointee.wantsAgain = true
    }
    unsafe makeReady(cell)
  }

  /// Marks a cell of this worker ready and queues its strand. On the worker's thread, outside a run of the strand.
  private func makeReady(_ cell: UnsafeMutablePointer<Cell>) {
    let strand = unsafe cell.pointee.strand
    unsafe strand.markReady(cell)
    let old = strand.state.bitwiseOr(Strand.State.scheduled, ordering: .acquiringAndReleasing).oldValue
    if old & (Strand.State.scheduled | Strand.State.closed) == 0 {
      unsafe ready.push(Unmanaged.passUnretained(strand))
    }
  }

  private func rest() {
    let deadline = unsafe wheel.earliest(exact: isVirtual)
    if isVirtual, let deadline {
      unsafe virtualNow = unsafe max(virtualNow, deadline)
      unsafe publishedNow.store(virtualNow, ordering: .relaxed)
      return
    }
    unsafe sleeping.pointee.store(1, ordering: .sequentiallyConsistent)
    // Whoever posts after this sees the flag; whatever was posted before is seen here.
    guard inbox.isEmpty && !isStopping.load(ordering: .sequentiallyConsistent) else {
      unsafe sleeping.pointee.store(0, ordering: .relaxed)
      return
    }
    let timeout: Int64
    if let deadline {
      anchor()
      timeout = unsafe max(0, deadline - anchorTime)
    } else {
      timeout = -1
    }
    if timeout != 0 { _ = unsafe millrace_futex_wait(sleepWord, 1, timeout) }
    unsafe sleeping.pointee.store(0, ordering: .relaxed)
    anchor()
  }

  /// What a run of a strand left.
  enum Verdict {
    case idle
    case more
    /// Every node is dropped; nobody may touch the strand any more.
    case retired
    /// The thread was replaced while it was in a node.
    case replaced
  }

  private func run(_ strand: Strand, _ seat: Seat) -> Verdict {
    _ = strand.state.exchange(Strand.State.scheduled, ordering: .acquiringAndReleasing)
    strand.collect()
    let start = TickScale.now
    var ticks = start
    if strand.requests.load(ordering: .relaxed) != 0 {
      guard answerRequests(of: strand, seat) else { return .replaced }
      if strand.state.load(ordering: .relaxed) & Strand.State.closed != 0 { return .retired }
      ticks = TickScale.now
    }
    if isVirtual { waitForEventRoom(strand) }
    var left = Self.budget
    while left > 0, let cell = unsafe strand.takeReady() {
      guard let end = unsafe activate(cell, strand, ticks, seat) else { return .replaced }
      ticks = end
      left &-= 1
    }
    busyTicks.add(Int(truncatingIfNeeded: ticks &- start))
    if strand.hasReady { return .more }
    let (exchanged, _) = strand.state.compareExchange(
      expected: Strand.State.scheduled, desired: 0, ordering: .acquiringAndReleasing)
    return exchanged ? .idle : .more
  }

  /// On a virtual clock no event may be lost because the program reads slowly: time stands still meanwhile.
  private func waitForEventRoom(_ strand: Strand) {
    guard let outbox = unsafe strand.outbox else { return }
    let supervisor = unsafe strand.run.engine.supervisor
    while unsafe outbox.pointee.queuedCount() > 512 {
      supervisor.kick()
      sched_yield()
    }
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

/// Runs `body` on a new thread of its own. The process need not wait for it.
func startDetachedThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
  let parcel = unsafe Unmanaged.passRetained(ThreadBody(name: name, body: body))
  var thread = pthread_t()
  let status = unsafe pthread_create(
    &thread, nil,
    { argument in
      let start = unsafe Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue()
      unsafe start.name.withCString { unsafe millrace_name_thread($0) }
      start.body()
      return nil
    }, parcel.toOpaque())
  precondition(status == 0, "no thread left: the system refused to start one")
  pthread_detach(thread)
}

private final class ThreadBody: Sendable {
  let name: String
  let body: @Sendable () -> Void
  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }
}
