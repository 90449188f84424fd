internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import Synchronization

/// One thread that runs strands: its inbox, its ready queue, its timer wheel, its clock.
///
/// The loop takes posted strands, fires timers, runs one strand for at most a budget of calls, and sleeps on a futex until the
/// next millisecond in which a timer is due. On a virtual clock it never sleeps while a timer is armed: it advances the clock to
/// the earliest deadline instead.
///
/// A worker whose thread is stuck in a node can get a new thread (`replaceThread`); the old one detects this when the node
/// returns, and ends without touching anything.
@safe
final class Worker: @unchecked Sendable {
  /// The most calls per turn of a strand, and the time after which no further call begins: together with one call this bounds how
  /// long another graph's voice waits. A virtual clock has no time limit, so that turns do not depend on the machine.
  static let budget = 64
  static let turnLimit: Nanoseconds = 2_000_000
  /// How often ticks are anchored to the clock while the worker does not sleep: at 15 parts per million the error is 60 ns.
  private static let anchorInterval: Nanoseconds = 4_000_000
  /// The most events queued for the listeners of a run before its nodes wait for them.
  static let maxQueuedEvents = 512
  /// Pause between two checks of them, in microseconds: long enough to let the reader run, short compared with the time it needs
  /// for that many events.
  private static let eventPause: useconds_t = 50

  let name: String
  let isVirtual: Bool
  /// Added to the thread's niceness, so that the bulk worker yields to voice.
  let nice: Int32
  let trace: TraceRing

  // Shared with other threads.
  private let inbox = Inbox()
  /// 1: the thread is asleep or about to sleep.
  private let sleep = Futex()
  private let isStopping = Atomic<Bool>(false)
  /// Which thread owns the worker.
  let leases = ThreadLeases()
  /// False when the kernel has no process-wide barrier: a stuck thread then keeps its worker.
  let canReplaceThreads: Bool
  /// Strands of running graphs, for choosing the least loaded worker.
  let load = Atomic<Int>(0)
  /// Turns begun: while it increases, no node blocks the worker.
  let turns = Counter()
  /// Ticks spent in strands, for the load of the worker.
  let busyTicks = Counter()

  // Used by the thread only.
  let threadOwner = ThreadOwner("worker")
  @exclusivity(unchecked) private var ready = ReadyQueue()
  /// The strand that had the last turn; only compared, never dereferenced.
  @exclusivity(unchecked) private var lastStrand: UnsafeMutableRawPointer?
  @exclusivity(unchecked) var wheel: TimerWheel
  @exclusivity(unchecked) var drainQueue = DrainQueue()
  @exclusivity(unchecked) private var virtualNow: Nanoseconds = 0
  /// The scheduled callbacks of all runs; only on a virtual clock.
  @exclusivity(unchecked) var callbacks = VirtualCallbacks()
  @exclusivity(unchecked) var appStrands = AppStrands()
  @exclusivity(unchecked) private var anchorTicks: UInt64 = 0
  @exclusivity(unchecked) private var anchorTime: Nanoseconds = 0
  private let scale = TickScale.machine
  /// `turnLimit` in ticks.
  private let turnTicks: UInt64
  /// `virtualNow` for other threads.
  private let publishedNow = Atomic<Int64>(0)

  init(name: String, isVirtual: Bool, nice: Int32, canReplaceThreads: Bool) {
    self.canReplaceThreads = canReplaceThreads
    self.name = name
    self.isVirtual = isVirtual
    turnTicks = isVirtual ? UInt64.max : TickScale.machine.ticks(Self.turnLimit)
    self.nice = nice
    unsafe lastStrand = nil
    trace = TraceRing(isVirtual: isVirtual)
    unsafe wheel = unsafe TimerWheel(now: isVirtual ? 0 : millrace_monotonic_ns())
  }

  // MARK: Its thread

  /// Starts the worker's first thread; 0, or the `errno` of the system's refusal.
  func startThread() -> Int32 {
    let lease = leases.makeFirst()
    return DetachedThread.start(name) { [self] in work(lease) }
  }

  private func work(_ lease: ThreadLease) {
    threadOwner.bind()
    if nice != 0 { _ = millrace_set_thread_nice(nice) }
    millrace_set_timer_slack(1_000)
    anchor()
    loop(lease)
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
    let lease = leases.makeNext()
    let standby = StandbyDecision()
    let refusal = DetachedThread.start(name) { [self] in
      if standby.waitUntilDecided() { work(lease) }
    }
    guard refusal == 0 else {
      lease.discard()
      return .refused(refusal)
    }
    let isTaken = leases.revoke(stuckIn: cell)
    if isTaken { leases.activate(lease) } else { lease.discard() }
    standby.decide(isNeeded: isTaken)
    return isTaken ? .done : .kept
  }

  // MARK: From any thread

  /// Queues a strand whose `scheduled` bit the caller just set. No lock; a system call only when the worker sleeps.
  func post(_ strand: Strand) {
    if inbox.push(strand) { wakeThread() }
  }

  private func wakeThread() {
    // Checked first: an exchange on every post would take the cache line from the other processor.
    if sleep.load() == 1 && sleep.exchange(0) == 1 { sleep.wake() }
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

  /// The clock's time at a tick count; accurate to some 15 parts per million since the last anchor.
  @inline(__always)
  func time(at ticks: UInt64) -> Nanoseconds {
    if isVirtual { return unsafe virtualNow }
    // A tick count from before the anchor would overflow into the far future.
    return unsafe ticks > anchorTicks ? anchorTime &+ scale.nanoseconds(ticks &- anchorTicks) : anchorTime
  }

  /// Anchors ticks to the clock. Called after every sleep and every few milliseconds of work.
  private func anchor() {
    // The clock is read first: if the thread is preempted between the two, its time is late, and no timer fires early.
    unsafe anchorTime = millrace_monotonic_ns()
    unsafe anchorTicks = TickScale.now
  }

  // MARK: The loop

  private func loop(_ lease: ThreadLease) {
    while !isStopping.load(ordering: .relaxed) {
      unsafe inbox.empty(into: &ready)
      expireTimers()
      guard let entry = unsafe ready.pop() else {
        sleepOrAdvanceClock()
        continue
      }
      let result = unsafe entry._withUnsafeGuaranteedRef { run($0, lease) }
      switch result {
      case .idle: break
      case .more: unsafe ready.push(entry)
      case .retired:
        // From here on the control side may free the strand: the run is notified last, and retained meanwhile.
        let run = unsafe entry._withUnsafeGuaranteedRef { unsafe $0.run }
        withExtendedLifetime(run) { run.strandRetired() }
      case .replaced: return
      }
    }
  }

  private func expireTimers() {
    if isVirtual {
      unsafe drainDue(virtualNow)
      while let cell = unsafe wheel.takeExactlyDue(now: virtualNow) { unsafe fire(cell, virtualNow) }
      return
    }
    if unsafe scale.nanoseconds(TickScale.now &- anchorTicks) > Self.anchorInterval { anchor() }
    let now = now
    drainDue(now)
    while let cell = unsafe wheel.takeDue(now: now) { unsafe fire(cell, now) }
  }

  /// A cell's timer fired: calls the node if it asked to be called by now.
  private func fire(_ cell: UnsafeMutablePointer<Cell>, _ now: Nanoseconds) {
    if unsafe cell.pointee.requestedWake <= now {
      unsafe cell.pointee.requestedWake = Nanoseconds.max
      unsafe cell.pointee.wantsCall = true
    }
    if unsafe cell.pointee.retry <= now {
      unsafe cell.pointee.retry = Nanoseconds.max
      if unsafe cell.pointee.retryCalls { unsafe cell.pointee.wantsCall = true }
      unsafe cell.pointee.retryCalls = false
    }
    unsafe armTimer(of: cell)
    unsafe makeReady(cell)
  }

  /// Drains the strands that are due: before the timers of that time, so that nothing due at it is emitted.
  private func drainDue(_ now: Nanoseconds) {
    while let entry = unsafe drainQueue.takeDue(now: now) {
      unsafe entry._withUnsafeGuaranteedRef { strand in
        drainAtItsTime(strand)
        queue(strand)
      }
    }
  }

  /// Marks a cell of this worker ready and queues its strand. On the worker's thread, outside a run of the strand.
  private func makeReady(_ cell: UnsafeMutablePointer<Cell>) {
    let strand = unsafe cell.pointee.strand
    unsafe strand.markReady(cell)
    queue(strand)
  }

  private func queue(_ strand: Strand) {
    let old = strand.state.bitwiseOr(Strand.State.scheduled, ordering: .acquiringAndReleasing).oldValue
    if old & (Strand.State.scheduled | Strand.State.closed) == 0 {
      unsafe ready.push(Unmanaged.passUnretained(strand))
    }
  }

  private func sleepOrAdvanceClock() {
    threadOwner.assertIsCurrent()
    var deadline = unsafe wheel.earliest(exact: isVirtual)
    if let drain = unsafe drainQueue.earliest { deadline = min(deadline ?? drain, drain) }
    if isVirtual, unsafe appStrands.waitForProgram {
      // The program's next action wakes the thread.
      deadline = nil
    } else if isVirtual {
      // Nothing is ready: a callback due before the next timer runs first.
      if let due = unsafe callbacks.next(until: deadline) {
        moveClock(to: due)
        return unsafe callbacks.runDue(at: due)
      }
      if let deadline { return moveClock(to: deadline) }
    }
    sleep.store(1)
    // A thread that posts after this sees the flag; anything posted before is seen here.
    guard inbox.isEmpty && !isStopping.load(ordering: .sequentiallyConsistent) else {
      sleep.store(0)
      return
    }
    var timeout: Nanoseconds = -1
    if let deadline {
      anchor()
      timeout = unsafe max(0, deadline - anchorTime)
    }
    if timeout != 0 { sleep.wait(while: 1, for: timeout) }
    sleep.store(0)
    anchor()
  }

  /// Moves a virtual clock forward.
  func moveClock(to time: Nanoseconds) {
    threadOwner.assertIsCurrent()
    unsafe virtualNow = unsafe max(virtualNow, time)
    unsafe publishedNow.store(virtualNow, ordering: .relaxed)
  }

  /// The outcome of one turn of a strand.
  enum TurnResult {
    case idle
    case more
    /// Every node is destroyed; the strand must not be used any more.
    case retired
    /// The thread was replaced during a node call.
    case replaced
  }

  private func run(_ strand: Strand, _ lease: ThreadLease) -> TurnResult {
    threadOwner.assertIsCurrent()
    _ = strand.state.exchange(Strand.State.scheduled, ordering: .acquiringAndReleasing)
    strand.collect()
    turns.add()
    let start = TickScale.now
    var ticks = start
    if strand.requests.load(ordering: .relaxed) != 0 {
      guard answerRequests(of: strand, lease) else { return .replaced }
      if strand.state.load(ordering: .relaxed) & Strand.State.closed != 0 { return .retired }
      ticks = TickScale.now
    }
    if isVirtual {
      waitForEventRoom(strand)
      if unsafe strand.firstTap != nil { waitForTaps(strand) }
      waitForTraceReader()
    }
    // The strand is no longer in the cache when others have had turns since its last one.
    let isCold = unsafe lastStrand != Unmanaged.passUnretained(strand).toOpaque()
    if isCold {
      unsafe lastStrand = Unmanaged.passUnretained(strand).toOpaque()
      if let first = unsafe strand.firstReady { unsafe fetchFirst(first, strand) }
    }
    var left = Self.budget
    // A request ends the turn: an interruption is handled after one call, not after all of them.
    while left > 0, ticks &- start < turnTicks, strand.requests.load(ordering: .relaxed) == 0,
      let cell = unsafe strand.takeReady()
    {
      if isCold { unsafe fetchDownstream(cell, strand) }
      guard let end = unsafe activate(cell, strand, ticks, lease) else { return .replaced }
      ticks = end
      left &-= 1
    }
    if unsafe strand.hasPendingInlets { advanceInlets(of: strand) }
    strand.wakePartner()
    busyTicks.add(Int(truncatingIfNeeded: ticks &- start))
    if strand.hasReady { return .more }
    let (exchanged, _) = strand.state.compareExchange(
      expected: Strand.State.scheduled, desired: 0, ordering: .acquiringAndReleasing)
    return exchanged ? .idle : .more
  }

  /// On a virtual clock no event may be lost because the program reads slowly: time does not advance meanwhile, unless the run is stopping.
  private func waitForEventRoom(_ strand: Strand) {
    guard let outbox = unsafe strand.outbox else { return }
    let supervisor = unsafe strand.run.engine.supervisor
    while unsafe outbox.pointee.queuedCount() > Self.maxQueuedEvents
      && strand.requests.load(ordering: .relaxed) & Strand.Request.retire == 0
    {
      supervisor.wake()
      usleep(Self.eventPause)
    }
  }

  /// Nor any trace record, when a trace reader holds the clock. Readers poll every few milliseconds and empty the ring at once, so
  /// this thread only yields.
  private func waitForTraceReader() {
    while trace.isFull && !isStopping.load(ordering: .relaxed) { sched_yield() }
  }
}
