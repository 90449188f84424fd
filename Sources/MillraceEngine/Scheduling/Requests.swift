internal import MillraceCore
internal import Synchronization

/// What the control side sends to a worker: messages for nodes, and requests to strands.
extension Worker {
  @inline(never)
  func deliverMail(to cell: UnsafeMutablePointer<Cell>, _ strand: Strand, _ lease: ThreadLease) -> Bool {
    // Mail to a failed node waits for its replacement.
    while unsafe cell.pointee.phase.isActive {
      guard unsafe hasRoomForEvents(cell) else {
        unsafe strand.keepMailSignal(cell.pointee.index)
        return true
      }
      guard let message = unsafe cell.pointee.mailbox.receive() else { break }
      guard unsafe deliver(message, to: cell, strand, lease) else { return false }
    }
    if unsafe cell.pointee.phase.isOver { unsafe loseMail(of: cell, strand) }
    return true
  }

  /// False while a link that waits has no room for the node's events: handling a message may post some. The link then wakes the cell.
  private func hasRoomForEvents(_ cell: UnsafeMutablePointer<Cell>) -> Bool {
    let index = unsafe cell.pointee.table.eventsOutput
    guard index >= 0, unsafe cell.pointee.table.outputs[index].gates else { return true }
    let output = unsafe cell.pointee.table.outputs[index]
    for link in unsafe 0..<output.linkCount {
      if unsafe !output.links.unsafelyUnwrapped[link].pointee.hasRoomOrRequestsWake() { return false }
    }
    return true
  }

  /// Calls a node with a message. False when the thread was replaced during the call.
  private func deliver(
    _ message: consuming ControlMessage, to cell: UnsafeMutablePointer<Cell>, _ strand: Strand,
    _ lease: ThreadLease
  ) -> Bool {
    unsafe leases.enter(cell, lease)
    var pending: ControlMessage? = consume message
    var ports = unsafe Ports(Cell.table(of: cell))
    let result = unsafe cell.pointee.executor._withUnsafeGuaranteedRef { executor in
      if let message = pending.take() {
        executor.receive(message, &ports)
      } else {
        CallResult.outcome(.done)
      }
    }
    guard leases.leave(lease) else { return false }
    if case .fault(let fault) = result {
      unsafe cell.pointee.table.fault = nil
      unsafe cell.pointee.table.requests = []
      unsafe fail(cell, strand, fault)
    } else {
      unsafe settleControlCall(cell, strand)
    }
    return true
  }

  /// After a call other than `process` or `finish`: handles what it left in the port table.
  private func settleControlCall(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    if unsafe cell.pointee.table.requests != [], unsafe !applyCallRequests(of: cell, strand) { return }
    if unsafe cell.pointee.table.wakeAt != Nanoseconds.max {
      unsafe armRequestedWake(cell, strand, cell.pointee.table.wakeAt)
    }
  }

  /// Carries out the pending requests of a strand. False when the thread was replaced during a call.
  @inline(never)
  func answerRequests(of strand: Strand, _ lease: ThreadLease) -> Bool {
    threadOwner.assertIsCurrent()
    let requests = strand.requests.exchange(0, ordering: .acquiringAndReleasing)
    if requests & Strand.Request.retire != 0 { return retire(strand, lease) }
    if requests & Strand.Request.begin != 0 { begin(strand) }
    // Before the first node call, so that a tap set before the start misses nothing.
    if requests & Strand.Request.outputs != 0 { changeOutputs(of: strand) }
    if requests & Strand.Request.inputs != 0 { takeInlets(of: strand) }
    if requests & Strand.Request.drainAtTime != 0 { scheduleDrain(of: strand) }
    if requests & Strand.Request.interrupt != 0 {
      guard interrupt(strand, lease) else { return false }
    }
    if requests & Strand.Request.replace != 0 {
      guard replaceFailed(in: strand, lease) else { return false }
    }
    // After the replacements, so that a recreated node is notified of ducking.
    if requests & (Strand.Request.duck | Strand.Request.replace) != 0 {
      guard duck(strand, lease) else { return false }
    }
    if requests & (Strand.Request.shed | Strand.Request.replace) != 0 { shed(strand) }
    if requests & Strand.Request.drain != 0 { drain(strand, from: Nanoseconds.min) }
    if requests & Strand.Request.endSources != 0 { endSources(of: strand) }
    if requests & Strand.Request.callbacks != 0 { unsafe callbacks.add(strand, now: now) }
    return true
  }

  /// Makes every cell ready for the first time. On a virtual clock graph time starts now; on the real one all strands of a graph
  /// have the same start.
  private func begin(_ strand: Strand) {
    if isVirtual {
      let run = unsafe strand.run
      // A part begins when it was added.
      unsafe strand.epoch = run.parent == nil ? now : run.epoch.load(ordering: .acquiring)
      unsafe run.epoch.store(strand.epoch, ordering: .releasing)
    }
    if isVirtual, unsafe !strand.run.ends.isEmpty { unsafe appStrands.add(strand) }
    let eventShift = unsafe strand.run.timeShift
    let isEarly = unsafe strand.epoch > now
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      unsafe cell.pointee.table.eventShift = eventShift
      if isEarly {
        unsafe cell.pointee.retry = unsafe strand.epoch
        unsafe armTimer(of: cell)
      } else {
        unsafe strand.markReady(cell)
      }
    }
  }

  /// Schedules the run's drain time, or drains now when it has passed.
  private func scheduleDrain(of strand: Strand) {
    guard unsafe !strand.isDraining else { return }
    let (time, isBeyond) = unsafe strand.epoch.addingReportingOverflow(
      strand.run.drainTime.load(ordering: .acquiring))
    if time <= now && !isBeyond {
      drainAtItsTime(strand)
    } else {
      unsafe drainQueue.add(strand, at: isBeyond ? Nanoseconds.max : time)
    }
  }

  /// Graph time has reached the run's drain time.
  func drainAtItsTime(_ strand: Strand) {
    let time = unsafe strand.run.drainTime.load(ordering: .acquiring)
    drain(strand, from: time)
    unsafe strand.run.reachedDrainTime(time)
  }

  /// Ends the sources; the nodes downstream run dry and end in turn. A late source still emits what was due before graph time `time`.
  private func drain(_ strand: Strand, from time: Nanoseconds) {
    unsafe drainQueue.remove(strand)
    unsafe strand.isDraining = true
    unsafe strand.drainsFrom = time
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      unsafe cell.pointee.table.isDraining = true
      // No link is added any more: inputs that wait for one end.
      for input in unsafe 0..<cell.pointee.table.inputCount {
        guard let link = unsafe cell.pointee.table.inputs[input].link else { continue }
        unsafe link.pointee.expectNoSuccessor()
        if unsafe link.pointee.isSpent() { unsafe strand.markReady(cell) }
      }
      // It waits for something outside the graph, and may stop waiting.
      if unsafe cell.pointee.drive == .itself && !cell.pointee.isSource { unsafe strand.markReady(cell) }
      guard unsafe cell.pointee.isSource && cell.pointee.phase == .running else { continue }
      if unsafe cell.pointee.requestedWake != Nanoseconds.max
        && cell.pointee.requestedWake &- strand.epoch < time
      {
        continue
      }
      unsafe finishSource(cell, strand)
    }
  }

  /// Ends the sources whose `endsWith` node has ended.
  private func endSources(of strand: Strand) {
    let run = unsafe strand.run
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      guard unsafe cell.pointee.isSource && cell.pointee.phase == .running,
        unsafe run.endingSources.contains(cell.pointee.nodeIndex)
      else { continue }
      unsafe cell.pointee.table.isDraining = true
      unsafe finishSource(cell, strand)
    }
  }

  func finishSource(_ cell: UnsafeMutablePointer<Cell>, _ strand: Strand) {
    unsafe cell.pointee.phase = .finishing
    unsafe forgetTimer(of: cell)
    unsafe cell.pointee.table.wakeAt = Nanoseconds.max
    unsafe strand.markReady(cell)
  }

  /// Notifies every node of the new generation, downstream first, and discards stale packets.
  private func interrupt(_ strand: Strand, _ lease: ThreadLease) -> Bool {
    let generation = unsafe strand.run.reply.counter.current
    for index in stride(from: strand.cellCount - 1, through: 0, by: -1) {
      let cell = unsafe strand.cells + index
      guard unsafe cell.pointee.table.generation != generation else { continue }
      unsafe cell.pointee.table.generation = generation
      unsafe cell.pointee.isDucked = false
      unsafe dropStale(at: cell, generation)
      guard unsafe cell.pointee.phase.isActive else { continue }
      unsafe cell.pointee.table.now = now &- strand.epoch
      unsafe leases.enter(cell, lease)
      var ports = unsafe Ports(Cell.table(of: cell))
      unsafe cell.pointee.executor._withUnsafeGuaranteedRef { $0.interrupted(&ports) }
      guard leases.leave(lease) else { return false }
      unsafe settleControlCall(cell, strand)
      unsafe strand.markReady(cell)
    }
    return true
  }

  private func dropStale(at cell: UnsafeMutablePointer<Cell>, _ generation: UInt32) {
    for index in unsafe 0..<cell.pointee.table.inputCount {
      if let link = unsafe cell.pointee.table.inputs[index].link {
        unsafe link.pointee.dropStale(generation: generation)
      }
    }
  }

  /// Notifies playback nodes of ducking, or of its end. Each change is delivered once.
  private func duck(_ strand: Strand, _ lease: ThreadLease) -> Bool {
    let run = unsafe strand.run
    let isDucked = run.reply.isDucked.load(ordering: .acquiring)
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      guard unsafe cell.pointee.playsReplies && cell.pointee.isDucked != isDucked,
        unsafe cell.pointee.phase.isActive
      else { continue }
      unsafe cell.pointee.isDucked = isDucked
      unsafe cell.pointee.table.now = now &- strand.epoch
      guard unsafe deliver(isDucked ? .duck : .resume, to: cell, strand, lease) else { return false }
      unsafe strand.markReady(cell)
    }
    return true
  }

  /// Starts or stops shedding the input of nodes, as the run's overload steps require.
  private func shed(_ strand: Strand) {
    let run = unsafe strand.run
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      let isShed = unsafe run.shedNodes.contains(cell.pointee.nodeIndex)
      if unsafe isShed && cell.pointee.phase == .running {
        unsafe cell.pointee.phase = .shedding
      } else if unsafe !isShed && cell.pointee.phase == .shedding {
        unsafe cell.pointee.phase = .running
      } else {
        continue
      }
      unsafe strand.markReady(cell)
    }
  }

  /// Carries out the decisions about failed nodes: replaces or isolates them.
  private func replaceFailed(in strand: Strand, _ lease: ThreadLease) -> Bool {
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      guard unsafe cell.pointee.phase == .failed else { continue }
      switch unsafe strand.run.failureDecisions.take(for: cell.pointee.nodeIndex) {
      case .none: break
      case .replace(let executor):
        let old = unsafe cell.pointee.executor
        unsafe cell.pointee.executor = unsafe executor
        unsafe leases.enter(cell, lease)
        unsafe old.release()
        guard leases.leave(lease) else { return false }
        unsafe cell.pointee.counters.pointee.restarts.add()
        unsafe cell.pointee.table.fault = nil
        unsafe cell.pointee.table.requests = []
        unsafe cell.pointee.isDucked = false
        unsafe cell.pointee.wantsCall = false
        let isOver = unsafe strand.isDraining || strand.run.endingSources.contains(cell.pointee.nodeIndex)
        unsafe cell.pointee.phase = isOver && cell.pointee.isSource ? .finishing : .running
        // It first reads the messages sent since the old node failed.
        unsafe strand.markMail(cell)
      case .isolate:
        unsafe end(cell, strand)
      }
    }
    return true
  }

  /// Destroys every node of a strand and closes it for wake-ups. The caller notifies the run when it is done with the strand.
  private func retire(_ strand: Strand, _ lease: ThreadLease) -> Bool {
    strand.state.bitwiseOr(Strand.State.closed, ordering: .acquiringAndReleasing)
    if isVirtual {
      unsafe callbacks.remove(strand)
      unsafe appStrands.remove(strand)
    }
    unsafe drainQueue.remove(strand)
    for index in 0..<strand.cellCount {
      let cell = unsafe strand.cells + index
      unsafe wheel.cancel(cell)
      unsafe cell.pointee.phase = .ended
      unsafe closeLiveLinks(of: cell, strand)
      unsafe leases.enter(cell, lease)
      unsafe cell.pointee.executor.release()
      guard leases.leave(lease) else { return false }
    }
    return true
  }
}
