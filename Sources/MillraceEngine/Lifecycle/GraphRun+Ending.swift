internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

extension GraphRun {
  /// Writes the final report, frees the run's memory (unless a lost thread still has it), tells everyone.
  func close(releasing: Bool) {
    let time = graphTime
    let wasStarted = status.withLock { $0.startRequestedAt != 0 }
    reportMissedBudgets(at: Nanoseconds.max)
    callbacks.cancel()
    // Nodes that were made anew for a run that stopped before it took them.
    failureDecisions.clear()
    inlets.withLock { $0.close(releasing: false) }
    engine.cutLinks(of: self)
    if releasing { releaseQueued() }
    ends.stop(releasing: releasing)
    outlets.withLock { $0.close(releasing: releasing) }
    inlets.withLock { $0.close(releasing: releasing) }
    let (leaked, keptBytes) = releasing ? returnPools() : (0, 0)
    endEvents(at: time)
    let snapshot = status.withLock { status in
      status.phase = .stopped
      status.stoppedAt = time
      status.leakedBlocks = leaked
      return self.snapshot(status)
    }
    let report = makeReport(snapshot, at: time)
    // Whoever sees the report may begin another run in its place.
    if releasing { releaseMemory(keeping: keptBytes) }
    for strand in strands { strand.worker.load.subtract(1, ordering: .relaxed) }
    engine.setRefusal(nil, of: id)
    // Whoever sees the report may add a part of the same name.
    completesParent = detachFromParent(report)
    let (waiters, listeners) = status.withLock { status in
      status.finalReport = report
      defer {
        status.waiters = []
        status.listeners = [:]
      }
      return (status.waiters, Array(status.listeners.values))
    }
    // One may have come in the meantime.
    for listener in listeners { listener.finish() }
    if wasStarted { engine.runEnded() }
    reply.leave(self)
    for waiter in waiters { waiter.resume(returning: report) }
    publishStopped()
  }

  /// Frees what is still queued, so that the pools get their blocks back. No worker touches the run any more.
  private func releaseQueued() {
    for strand in strands {
      for index in 0..<strand.cellCount { unsafe (strand.cells + index).deinitialize(count: 1) }
    }
    guard let memory = memory else { return }
    memory.freeLinks()
    for mailbox in mailboxes { while let message = mailbox.receive() { _ = consume message } }
  }

  /// Frees a run that was prepared and never started: no worker has ever known of it.
  func dropUnstarted() {
    for strand in strands {
      for index in 0..<strand.cellCount { unsafe strand.cells[index].executor.release() }
      strand.worker.load.subtract(1, ordering: .relaxed)
    }
    releaseQueued()
    ends.stop(releasing: true)
    outlets.withLock { $0.close(releasing: true) }
    inlets.withLock { $0.close(releasing: true) }
    releaseMemory(keeping: returnPools().bytes)
  }

  /// Lets the pools go; answers the blocks that nodes still hold, and the bytes of the pools that stay for them.
  private func returnPools() -> (blocks: Int, bytes: Int) {
    guard let memory = memory else { return (0, 0) }
    var leaked = 0
    var kept = 0
    for pool in memory.pools {
      let missing = pool.blockCount - pool.freeCount
      if missing > 0 {
        leaked += missing
        kept += pool.byteCount
        // A block out there points at its pool: the pool must outlive it.
        _ = unsafe Unmanaged.passRetained(pool)
      }
    }
    return (leaked, kept)
  }

  private func releaseMemory(keeping kept: Int) {
    let claim = memory?.claim
    status.withLock { _ in memory = nil }
    claim?.release(keeping: kept)
  }
}

extension GraphRun {
  /// Turns begun by the workers that have not let go of the run: the same number again says that none of them moves. It may also change
  /// because one has let go, which is a move as well.
  var turnsOfHolders: Int {
    strands.reduce(0) { $1.holdsRun ? $0 &+ $1.worker.turns.current : $0 }
  }
}

extension Strand {
  /// False when the worker has dropped the strand's nodes, or will touch none of them again.
  var holdsRun: Bool { state.load(ordering: .acquiring) & State.closed == 0 || isInCall }

  /// True when the strand's worker is inside a node of this strand.
  var isInCall: Bool {
    let address = worker.cellInCall
    let first = unsafe UInt(bitPattern: cells)
    let end = unsafe UInt(bitPattern: cells + cellCount)
    return address >= first && address < end
  }

  /// The name of the node of this strand that the worker is inside of.
  func nodeInCall(of run: GraphRun) -> String? {
    let address = worker.cellInCall
    guard isInCall, let cell = unsafe UnsafeMutablePointer<Cell>(bitPattern: address) else { return nil }
    return unsafe run.plan.nodes[cell.pointee.nodeIndex].name
  }

  /// Gives the worker a new thread, if it is still inside a node of this strand.
  func replaceThread() -> Worker.Replacement {
    let address = worker.cellInCall
    return isInCall ? worker.replaceThread(stuckIn: address) : .kept
  }
}
