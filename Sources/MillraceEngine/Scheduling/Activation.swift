internal import MillraceCore
internal import Synchronization

/// Whether a cell may be called now.
enum Gate {
  /// Nothing to do.
  case idle
  /// Call `process`.
  case process
  /// Call `finish`.
  case finish
  /// There is work, but an output is full; its reader will wake the cell.
  case blocked
  /// There is work, but no free block; a timer retries.
  case starved
  /// There is work, but the run's listeners are behind; a timer retries.
  case listenersBehind
}

extension Worker {
  /// How long a cell without a free block waits before it retries. Blocks are returned from any thread without a wake-up.
  static let starvedRetry: Nanoseconds = 1_000_000

  /// Runs one ready cell: messages first, then at most one call of `process` or `finish`.
  ///
  /// Returns the tick count at the end, which is the start of the next call; nil when the thread was replaced meanwhile.
  @inline(__always)
  func activate(
    _ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ startTicks: UInt64, _ lease: ThreadLease
  ) -> UInt64? {
    unsafe cell.pointee.table.now = time(at: startTicks) &- strand.epoch
    if unsafe strand.takeMailSignal(cell.pointee.index) {
      guard unsafe deliverMail(to: cell, strand, lease) else { return nil }
    }
    let isFinishing: Bool
    switch unsafe gate(cell) {
    case .process: isFinishing = false
    case .finish: isFinishing = true
    case .idle: return startTicks
    case .blocked:
      unsafe cell.pointee.counters.pointee.blocked.add()
      return startTicks
    case .starved:
      unsafe cell.pointee.counters.pointee.starved.add()
      unsafe retryLater(at: cell, strand, calls: false)
      return startTicks
    case .listenersBehind:
      // The worker has other graphs to run: it wakes the supervisor to deliver the events, and retries.
      unsafe strand.run.engine.supervisor.wake()
      unsafe retryLater(at: cell, strand, calls: false)
      return startTicks
    }
    let taken = unsafe cell.pointee.table.taken
    unsafe leases.enter(cell, lease)
    var ports = unsafe Ports(Cell.table(of: cell))
    let result = unsafe cell.pointee.executor._withUnsafeGuaranteedRef {
      isFinishing ? $0.finish(&ports) : $0.process(&ports)
    }
    guard leases.leave(lease) else { return nil }
    let end = TickScale.now
    unsafe count(cell, start: startTicks, end: end, taken: cell.pointee.table.taken &- taken)
    unsafe settle(
      cell, strand, result, wasFinishing: isFinishing, tookPackets: cell.pointee.table.taken != taken)
    return end
  }

  // MARK: Before the call

  @inline(__always)
  private func gate(_ cell: UnsafeMutablePointer<Cell>) -> Gate {
    switch unsafe cell.pointee.phase {
    case .running: break
    case .finishing: return unsafe hasRoom(cell) ?? .finish
    case .shedding: return unsafe shedGate(cell)
    case .failed, .ended: return .idle
    case .discarding:
      unsafe discardInputs(of: cell)
      return .idle
    }
    if unsafe cell.pointee.wantsCall { return unsafe hasRoom(cell) ?? .process }
    switch unsafe inputs(of: cell) {
    case .waiting: return .idle
    case .ready: return unsafe hasRoom(cell) ?? .process
    case .over:
      unsafe cell.pointee.phase = .finishing
      return unsafe hasRoom(cell) ?? .finish
    }
  }

  /// The gate of a cell that sheds its input: empties its inputs, until they are over.
  @inline(never)
  private func shedGate(_ cell: UnsafeMutablePointer<Cell>) -> Gate {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link { unsafe link.pointee.shed() }
    }
    guard unsafe inputs(of: cell) == .over else { return .idle }
    unsafe cell.pointee.phase = .finishing
    return unsafe hasRoom(cell) ?? .finish
  }

  private enum Inputs {
    case waiting, ready, over
  }

  @inline(__always)
  private func inputs(of cell: UnsafeMutablePointer<Cell>) -> Inputs {
    let inputs = unsafe cell.pointee.table.inputs
    let count = unsafe cell.pointee.table.inputCount
    let drive = unsafe cell.pointee.drive
    var overCount = 0
    var drivingCount = 0
    for index in 0..<count {
      guard unsafe inputs[index].drives, let link = unsafe inputs[index].link else { continue }
      drivingCount &+= 1
      if unsafe link.pointee.hasPacket(generation: cell.pointee.table.generation) {
        if drive == .anyInput { return .ready }
      } else if unsafe link.pointee.isOver() {
        overCount &+= 1
      } else if drive == .allInputs {
        return .waiting
      }
    }
    if drivingCount > 0 && overCount == drivingCount { return .over }
    switch drive {
    case .anyInput: return .waiting
    case .allInputs: return drivingCount > 0 ? .ready : .waiting
    case .itself: return .ready
    }
  }

  /// nil when every gating output has room and a free block; otherwise the reason.
  @inline(__always)
  private func hasRoom(_ cell: UnsafeMutablePointer<Cell>) -> Gate? {
    if unsafe cell.pointee.waitsForListeners, unsafe listenersAreBehind(cell) { return .listenersBehind }
    let outputs = unsafe cell.pointee.table.outputs
    for index in unsafe 0..<cell.pointee.table.outputCount where unsafe outputs[index].gates {
      let count = unsafe outputs[index].linkCount
      for link in 0..<count {
        if unsafe !outputs[index].links.unsafelyUnwrapped[link].pointee.hasRoomOrRequestsWake() {
          return .blocked
        }
      }
      if count > 0, let pool = unsafe outputs[index].pool {
        if unsafe !pool._withUnsafeGuaranteedRef({ $0.hasFree }) { return .starved }
      }
    }
    return nil
  }

  /// True when the run's listeners are so far behind that a node that posts events must wait.
  private func listenersAreBehind(_ cell: UnsafeMutablePointer<Cell>) -> Bool {
    guard let outbox = unsafe cell.pointee.table.outbox else { return false }
    return unsafe outbox.pointee.queuedCount() > Self.maxQueuedEvents
  }

  // MARK: After the call

  @inline(__always)
  private func count(_ cell: UnsafeMutablePointer<Cell>, start: UInt64, end: UInt64, taken: Int) {
    let ticks = end &- start
    let counters = unsafe cell.pointee.counters
    unsafe counters.pointee.activations.add()
    unsafe counters.pointee.packets.add(taken)
    unsafe counters.pointee.busyTicks.add(Int(truncatingIfNeeded: ticks))
    unsafe counters.pointee.worstTicks.raise(to: Int(truncatingIfNeeded: ticks))
    let place = unsafe counters.pointee.callTimes.pointee.add(ticks)
    unsafe cell.pointee.lastCallTime = UnsafeRawPointer(counters.pointee.callTimes) + place
    if unsafe ticks > cell.pointee.budgetTicks { unsafe recordOverBudget(cell, ticks) }
    if taken > 0 {
      if unsafe cell.pointee.isSink && !cell.pointee.isFed {
        unsafe cell.pointee.isFed = true
        unsafe cell.pointee.strand.run.recordFirstPacket()
      }
      let age = unsafe cell.pointee.table.age
      unsafe counters.pointee.lastAge.set(Int(age))
      unsafe counters.pointee.worstAge.raise(to: Int(age))
      if unsafe age > cell.pointee.maxAge { unsafe recordOverAge(cell, age) }
      if let ages = unsafe counters.pointee.ages { unsafe ages.pointee.add(UInt64(max(0, age))) }
      unsafe cell.pointee.table.age = Nanoseconds.min
    }
    unsafe trace.record(
      cell: cell.pointee.traceID, start: start, ticks: ticks, time: cell.pointee.table.now)
  }

  @inline(never)
  private func recordOverBudget(_ cell: UnsafeMutablePointer<Cell>, _ ticks: UInt64) {
    unsafe cell.pointee.counters.pointee.overBudget.add()
    unsafe cell.pointee.counters.pointee.lastOverBudget.set(Int(truncatingIfNeeded: ticks))
    // On a virtual clock a call may take as long as it needs.
    if !isVirtual { unsafe cell.pointee.strand.run.markMissedBudget() }
  }

  @inline(never)
  private func recordOverAge(_ cell: UnsafeMutablePointer<Cell>, _ age: Nanoseconds) {
    unsafe cell.pointee.counters.pointee.overAge.add()
    unsafe cell.pointee.counters.pointee.lastOverAge.set(Int(age))
    unsafe cell.pointee.strand.run.markMissedBudget()
  }

  @inline(__always)
  private func settle(
    _ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ result: CallResult, wasFinishing: Bool,
    tookPackets: Bool
  ) {
    var waitsForBlock = false
    if unsafe cell.pointee.table.requests != [] {
      waitsForBlock = unsafe cell.pointee.table.requests.contains(.retry)
      guard unsafe applyCallRequests(of: cell, strand) else { return }
    }
    let wakeTime = unsafe cell.pointee.table.wakeAt
    let wantedCall = unsafe cell.pointee.wantsCall && cell.pointee.drive != .itself
    unsafe cell.pointee.wantsCall = false
    if unsafe strand.isDraining, unsafe !isDue(before: strand.drainsFrom, cell, result, waitsForBlock) {
      unsafe finishSource(cell, strand)
      return
    }
    switch result {
    case .outcome(.done):
      if wasFinishing {
        unsafe end(cell, strand)
        return
      }
      if wakeTime != Nanoseconds.max { unsafe armRequestedWake(cell, strand, wakeTime) }
      // A node that took nothing although it has packets waits for something else: calling it again would spin. After a call it
      // had asked for, its packets have not been offered yet, so it is called for them. And when all inputs are over it is called
      // to finish.
      let inputs = unsafe inputs(of: cell)
      if inputs == .over || ((tookPackets || wantedCall) && inputs == .ready) {
        unsafe strand.markReady(cell)
      }
    case .outcome(.again):
      if wakeTime != Nanoseconds.max {
        unsafe armRequestedWake(cell, strand, wakeTime)
      } else if !waitsForBlock {
        unsafe cell.pointee.wantsCall = true
        unsafe strand.markReady(cell)
      }
    case .outcome(.ended): unsafe end(cell, strand)
    case .fault(let fault): unsafe fail(cell, strand, fault)
    }
  }

  /// False when a source of a draining strand has nothing left that was due before the drain time.
  private func isDue(
    before time: Nanoseconds, _ cell: UnsafeMutablePointer<Cell>, _ result: CallResult, _ waitsForBlock: Bool
  ) -> Bool {
    guard unsafe cell.pointee.isSource && cell.pointee.phase == .running else { return true }
    switch result {
    case .outcome(.ended), .fault: return true
    case .outcome(.done), .outcome(.again):
      let next = unsafe waitsForBlock ? cell.pointee.table.now &+ Self.starvedRetry : Nanoseconds.max
      return unsafe min(cell.pointee.table.wakeAt, next) < time
    }
  }

  func armRequestedWake(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ wakeTime: Nanoseconds) {
    unsafe cell.pointee.table.wakeAt = Nanoseconds.max
    let deadline = unsafe TimerWheel.deadline(wakeTime, after: strand.epoch)
    let isDue = deadline <= now
    unsafe cell.pointee.requestedWake = isDue ? Nanoseconds.max : deadline
    unsafe armTimer(of: cell)
    if isDue {
      unsafe cell.pointee.wantsCall = true
      unsafe strand.markReady(cell)
    }
  }

  /// Retries a cell shortly, independently of the wake-up its node requested; with `calls` the node is called then.
  private func retryLater(at cell: UnsafeMutablePointer<Cell>, _ strand: Strand, calls: Bool) {
    if calls { unsafe cell.pointee.retryCalls = true }
    let retry = unsafe strand.epoch &+ cell.pointee.table.now &+ Self.starvedRetry
    unsafe cell.pointee.retry = unsafe min(cell.pointee.retry, retry)
    unsafe armTimer(of: cell)
  }

  /// Arms a cell's single timer for the earlier of its requested wake-up and its retry.
  func armTimer(of cell: UnsafeMutablePointer<Cell>) {
    threadOwner.assertIsCurrent()
    let deadline = unsafe min(cell.pointee.requestedWake, cell.pointee.retry)
    if deadline == Nanoseconds.max {
      unsafe wheel.cancel(cell)
    } else if unsafe !cell.pointee.isInWheel || cell.pointee.timerDeadline != deadline {
      unsafe wheel.arm(cell, at: deadline)
    }
  }

  /// Cancels a cell's timer: its node is not called any more, or is replaced.
  func forgetTimer(of cell: UnsafeMutablePointer<Cell>) {
    threadOwner.assertIsCurrent()
    unsafe cell.pointee.requestedWake = Nanoseconds.max
    unsafe cell.pointee.retry = Nanoseconds.max
    unsafe cell.pointee.retryCalls = false
    unsafe wheel.cancel(cell)
  }

  /// Carries out what the call requested besides its outcome. False when the node has failed.
  @inline(never)
  func applyCallRequests(of cell: UnsafeMutablePointer<Cell>, _ strand: Strand) -> Bool {
    let requests = unsafe cell.pointee.table.requests
    unsafe cell.pointee.table.requests = []
    let run = unsafe strand.run
    if requests.contains(.interrupt) { run.interrupt() }
    if requests.contains(.duck) { run.setDucked(true) }
    if requests.contains(.resume) { run.setDucked(false) }
    if requests.contains(.retry) { unsafe retryLater(at: cell, strand, calls: true) }
    guard let fault = unsafe cell.pointee.table.fault else { return true }
    unsafe cell.pointee.table.fault = nil
    unsafe fail(cell, strand, fault)
    return false
  }
}
