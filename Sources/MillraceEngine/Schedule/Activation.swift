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
  /// There is work, but an output has no room; its reader will wake the cell.
  case blocked
  /// There is work, but no free block; a timer looks again.
  case starved
}

extension Worker {
  /// How long a cell without a free block waits before it looks again. Blocks return from any thread without telling.
  static let starvedRetry: Nanoseconds = 1_000_000

  /// Runs one ready cell: messages first, then at most one call of `process` or `finish`.
  ///
  /// Answers the tick count at the end, which is the start of the next call; nil when the thread was replaced meanwhile.
  @inline(__always)
  func activate(
    _ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ startTicks: UInt64, _ seat: Seat
  ) -> UInt64? {
    unsafe cell.pointee.table.now = time(at: startTicks) &- strand.epoch
    if unsafe strand.takeMailSignal(cell.pointee.index) {
      guard unsafe deliverMail(to: cell, strand, seat) else { return nil }
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
      let retry = unsafe strand.epoch &+ cell.pointee.table.now &+ Self.starvedRetry
      if unsafe !cell.pointee.isInWheel || cell.pointee.timerDeadline > retry {
        unsafe wheel.arm(cell, at: retry)
      }
      return startTicks
    }
    let taken = unsafe cell.pointee.table.taken
    unsafe enter(cell, seat)
    var ports = unsafe Ports(Cell.table(of: cell))
    let result = unsafe cell.pointee.executor._withUnsafeGuaranteedRef {
      isFinishing ? $0.finish(&ports) : $0.process(&ports)
    }
    guard leave(seat) else { return nil }
    let end = TickScale.now
    unsafe count(cell, start: startTicks, end: end, taken: cell.pointee.table.taken &- taken)
    unsafe settle(
      cell, strand, result, wasFinishing: isFinishing, tookSome: cell.pointee.table.taken != taken)
    return end
  }

  // MARK: Before the call

  @inline(__always)
  private func gate(_ cell: UnsafeMutablePointer<Cell>) -> Gate {
    switch unsafe cell.pointee.phase {
    case .running: break
    case .finishing: return unsafe hasRoom(cell) ?? .finish
    case .failed, .ended: return .idle
    case .discarding:
      unsafe discardInputs(of: cell)
      return .idle
    }
    if unsafe cell.pointee.wantsAgain { return unsafe hasRoom(cell) ?? .process }
    switch unsafe inputs(of: cell) {
    case .waiting: return .idle
    case .ready: return unsafe hasRoom(cell) ?? .process
    case .over:
      unsafe cell.pointee.phase = .finishing
      return unsafe hasRoom(cell) ?? .finish
    }
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
      if unsafe link.pointee.hasPacket() {
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

  /// nil when every output has room and blocks; otherwise why not.
  @inline(__always)
  private func hasRoom(_ cell: UnsafeMutablePointer<Cell>) -> Gate? {
    let outputs = unsafe cell.pointee.table.outputs
    for index in unsafe 0..<cell.pointee.table.outputCount {
      let count = unsafe outputs[index].linkCount
      for link in 0..<count {
        if unsafe !outputs[index].links.unsafelyUnwrapped[link].pointee.hasRoomOrAsks() { return .blocked }
      }
      if count > 0, let pool = unsafe outputs[index].pool {
        if unsafe !pool._withUnsafeGuaranteedRef({ $0.hasFree }) { return .starved }
      }
    }
    return nil
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
    if unsafe ticks > cell.pointee.budgetTicks { unsafe counters.pointee.overBudget.add() }
    if taken > 0 {
      if unsafe cell.pointee.isSink && !cell.pointee.isFed {
        unsafe cell.pointee.isFed = true
        unsafe cell.pointee.strand.run.noteFirstPacket()
      }
      let age = unsafe cell.pointee.table.age
      unsafe counters.pointee.lastAge.set(Int(age))
      unsafe counters.pointee.worstAge.raise(to: Int(age))
      unsafe cell.pointee.table.age = Nanoseconds.min
    }
    unsafe trace.note(cell: cell.pointee.traceID, start: start, ticks: ticks)
  }

  @inline(__always)
  private func settle(
    _ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ result: CallResult, wasFinishing: Bool,
    tookSome: Bool
  ) {
    if unsafe cell.pointee.table.fault != nil {
      unsafe failFromPorts(cell, strand)
      return
    }
    let wish = unsafe cell.pointee.table.wakeAt
    unsafe cell.pointee.wantsAgain = false
    switch result {
    case .outcome(.done):
      if wasFinishing {
        unsafe end(cell, strand)
        return
      }
      if wish != Nanoseconds.max { unsafe armWish(cell, strand, wish) }
      // A node that took nothing and still has packets waits for something else: calling it again would spin. But when nothing
      // more can come it is called once more, to finish.
      let inputs = unsafe inputs(of: cell)
      if inputs == .over || (tookSome && inputs == .ready) { unsafe strand.markReady(cell) }
    case .outcome(.again):
      if wish != Nanoseconds.max {
        unsafe armWish(cell, strand, wish)
      } else {
        unsafe cell.pointee.wantsAgain = true
        unsafe strand.markReady(cell)
      }
    case .outcome(.ended): unsafe end(cell, strand)
    case .fault(let fault): unsafe fail(cell, strand, fault)
    }
  }

  /// After a call that is neither `process` nor `finish`: what it left in the port table.
  @inline(never)
  private func settleAside(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    if unsafe cell.pointee.table.fault != nil {
      unsafe failFromPorts(cell, strand)
    } else if unsafe cell.pointee.table.wakeAt != Nanoseconds.max {
      unsafe armWish(cell, strand, cell.pointee.table.wakeAt)
    }
  }

  private func armWish(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ wish: Nanoseconds) {
    unsafe cell.pointee.table.wakeAt = Nanoseconds.max
    let deadline = unsafe wish &+ strand.epoch
    if deadline <= now {
      unsafe wheel.cancel(cell)
      unsafe cell.pointee.hasWish = false
      unsafe cell.pointee.wantsAgain = true
      unsafe strand.markReady(cell)
    } else {
      unsafe cell.pointee.hasWish = true
      unsafe wheel.arm(cell, at: deadline)
    }
  }

  @inline(never)
  private func failFromPorts(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    guard let fault = unsafe cell.pointee.table.fault else { return }
    unsafe cell.pointee.table.fault = nil
    unsafe fail(cell, strand, fault)
  }

  /// The cell will never be called again: its outputs end behind their last packet.
  @inline(never)
  func end(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    unsafe cell.pointee.phase = .ended
    unsafe wheel.cancel(cell)
    unsafe endOutputs(of: cell)
    unsafe discardInputs(of: cell)
    // An upstream that is still at work must not wait for this reader.
    if unsafe hasOpenInputs(cell) { unsafe cell.pointee.phase = .discarding }
    unsafe strand.run.cellEnded()
  }

  private func hasOpenInputs(_ cell: UnsafeMutablePointer<Cell>) -> Bool {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link, unsafe !link.pointee.isOver() {
        return true
      }
    }
    return false
  }

  @inline(never)
  func fail(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ fault: NodeFault) {
    unsafe cell.pointee.phase = .failed
    unsafe wheel.cancel(cell)
    unsafe cell.pointee.table.wakeAt = Nanoseconds.max
    unsafe strand.run.cellFailed(cell, fault)
  }

  func endOutputs(of cell: UnsafeMutablePointer<Cell>) {
    for index in unsafe 0..<cell.pointee.table.outputCount {
      for link in unsafe 0..<cell.pointee.table.outputs[index].linkCount {
        unsafe cell.pointee.table.outputs[index].links.unsafelyUnwrapped[link].pointee.end()
      }
    }
  }

  @inline(never)
  func discardInputs(of cell: UnsafeMutablePointer<Cell>) {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link { unsafe link.pointee.discard() }
    }
  }

  // MARK: Control

  @inline(never)
  private func deliverMail(to cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ seat: Seat) -> Bool {
    while let message = unsafe cell.pointee.mailbox.receive() {
      // A node that failed or ended has nobody to read its mail.
      guard unsafe cell.pointee.phase == .running || cell.pointee.phase == .finishing else { continue }
      unsafe enter(cell, seat)
      var parcel: ControlMessage? = consume message
      var ports = unsafe Ports(Cell.table(of: cell))
      let result = unsafe cell.pointee.executor._withUnsafeGuaranteedRef { executor in
        if let message = parcel.take() {
          executor.receive(message, &ports)
        } else {
          CallResult.outcome(.done)
        }
      }
      guard leave(seat) else { return false }
      if case .fault(let fault) = result {
        unsafe cell.pointee.table.fault = nil
        unsafe fail(cell, strand, fault)
      } else {
        unsafe settleAside(cell, strand)
      }
    }
    return true
  }

  /// Carries out what the control side asked of a strand. False when the thread was replaced meanwhile.
  @inline(never)
  func answerRequests(of strand: Strand, _ seat: Seat) -> Bool {
    let requests = strand.requests.exchange(0, ordering: .acquiringAndReleasing)
    if requests & Strand.Request.retire != 0 { return retire(strand, seat) }
    if requests & Strand.Request.begin != 0 { begin(strand) }
    if requests & Strand.Request.interrupt != 0 {
      guard interrupt(strand, seat) else { return false }
    }
    if requests & Strand.Request.replace != 0 {
      guard replaceFailed(in: strand, seat) else { return false }
    }
    if requests & Strand.Request.drain != 0 { drain(strand) }
    return true
  }

  /// Every cell gets its first look. On a virtual clock graph time starts now; on the real one all strands of a graph were
  /// given the same start.
  private func begin(_ strand: Strand) {
    if isVirtual {
      unsafe strand.epoch = now
      unsafe strand.run.epoch.store(now, ordering: .releasing)
    }
    let isEarly = unsafe strand.epoch > now
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      if isEarly {
        unsafe wheel.arm(cell, at: strand.epoch)
      } else {
        unsafe strand.markReady(cell)
      }
    }
  }

  /// Sources end; everything behind them runs dry and ends in turn.
  private func drain(_ strand: Strand) {
    unsafe strand.isDraining = true
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      if unsafe cell.pointee.isSource && cell.pointee.phase == .running {
        unsafe cell.pointee.phase = .finishing
        unsafe wheel.cancel(cell)
        unsafe strand.markReady(cell)
      }
    }
  }

  private func interrupt(_ strand: Strand, _ seat: Seat) -> Bool {
    let generation = unsafe strand.run.generation.load(ordering: .acquiring)
    for index in stride(from: strand.cellCount - 1, through: 0, by: -1) {
      let cell = unsafe strand.cells + index
      guard unsafe cell.pointee.table.generation != generation else { continue }
      unsafe cell.pointee.table.generation = generation
      guard unsafe cell.pointee.phase == .running || cell.pointee.phase == .finishing else { continue }
      unsafe cell.pointee.table.now = now &- strand.epoch
      unsafe enter(cell, seat)
      var ports = unsafe Ports(Cell.table(of: cell))
      unsafe cell.pointee.executor._withUnsafeGuaranteedRef { $0.interrupted(&ports) }
      guard leave(seat) else { return false }
      unsafe settleAside(cell, strand)
      unsafe strand.markReady(cell)
    }
    return true
  }

  /// Puts the nodes that were made anew in the place of those that failed, or isolates what is not to come back.
  private func replaceFailed(in strand: Strand, _ seat: Seat) -> Bool {
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      guard unsafe cell.pointee.phase == .failed else { continue }
      switch unsafe strand.run.takeVerdict(on: cell.pointee.nodeIndex) {
      case .none: break
      case .replace(let executor):
        let old = unsafe cell.pointee.executor
        unsafe cell.pointee.executor = unsafe executor
        unsafe enter(cell, seat)
        unsafe old.release()
        guard leave(seat) else { return false }
        unsafe cell.pointee.counters.pointee.restarts.add()
        unsafe cell.pointee.table.fault = nil
        unsafe cell.pointee.table.lastGeneration = 0
        unsafe cell.pointee.wantsAgain = false
        unsafe cell.pointee.hasWish = false
        unsafe cell.pointee.phase = strand.isDraining && cell.pointee.isSource ? .finishing : .running
        unsafe strand.markReady(cell)
      case .isolate:
        unsafe end(cell, strand)
      }
    }
    return true
  }

  /// Drops every node of a strand and closes it for wake-ups. The run is told by the caller, when it is done with the strand.
  private func retire(_ strand: Strand, _ seat: Seat) -> Bool {
    strand.state.bitwiseOr(Strand.State.closed, ordering: .acquiringAndReleasing)
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      unsafe wheel.cancel(cell)
      unsafe cell.pointee.phase = .ended
      unsafe enter(cell, seat)
      unsafe cell.pointee.executor.release()
      guard leave(seat) else { return false }
    }
    return true
  }
}
