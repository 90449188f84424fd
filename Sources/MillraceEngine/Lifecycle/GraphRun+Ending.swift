internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

extension GraphRun {
  /// Builds the final report, frees the run's memory (unless an abandoned thread still uses it), and notifies all waiters.
  func close(releasing: Bool) {
    engine.supervisor.threadOwner.assertIsCurrent()
    let time = graphTime
    let wasStarted = status.withLock { $0.startRequestedAt != 0 }
    missedBudgets.report(of: self, at: Nanoseconds.max)
    callbacks.cancel()
    // Recreated nodes that the run stopped before it used them.
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
    // Any thread that sees the report may start another run in its place.
    if releasing { memory?.claim?.release(keeping: keptBytes) }
    for strand in strands { strand.worker.load.subtract(1, ordering: .relaxed) }
    engine.setRefusal(nil, of: id)
    // Any thread that sees the report may add a part of the same name.
    completesParent = detachFromParent(report)
    let waiters = status.withLock { status in
      // In one step: until the report is there, others read the counters.
      if releasing { memory = nil }
      status.finalReport = report
      defer { status.waiters = [] }
      return status.waiters
    }
    if wasStarted { engine.runEnded() }
    reply.leave(self)
    for waiter in waiters { waiter.resume(returning: report) }
    publishStopped()
  }

  /// Frees what is still queued, so that the blocks return to their pools. No worker uses the run any more.
  private func releaseQueued() {
    for strand in strands {
      for index in 0..<strand.cellCount { unsafe (strand.cells + index).deinitialize(count: 1) }
    }
    guard let memory = memory else { return }
    memory.freeLinks()
    for mailbox in mailboxes { while let message = mailbox.receive() { _ = consume message } }
  }

  /// Frees a run that was prepared and never started: no worker has ever seen it.
  func dropUnstarted() {
    for strand in strands {
      for index in 0..<strand.cellCount { unsafe strand.cells[index].executor.release() }
      strand.worker.load.subtract(1, ordering: .relaxed)
    }
    releaseQueued()
    ends.stop(releasing: true)
    outlets.withLock { $0.close(releasing: true) }
    inlets.withLock { $0.close(releasing: true) }
    memory?.claim?.release(keeping: returnPools().bytes)
    memory = nil
  }

  /// Releases the pools. Returns the blocks that nodes still hold, and the bytes of the pools kept alive for them.
  private func returnPools() -> (blocks: Int, bytes: Int) {
    guard let memory = memory else { return (0, 0) }
    var leaked = 0
    var kept = 0
    for pool in memory.pools {
      let missing = pool.blockCount - pool.freeCount
      if missing > 0 {
        leaked += missing
        kept += pool.byteCount
        // An outstanding block points at its pool: the pool must outlive it.
        _ = unsafe Unmanaged.passRetained(pool)
      }
    }
    return (leaked, kept)
  }

}

extension GraphRun {
  /// Turns begun by the workers that have not released the run: an unchanged number means that none of them makes progress. It
  /// also changes when a worker releases the run, which is progress too.
  var turnsOfHolders: Int {
    strands.reduce(0) { $1.holdsRun ? $0 &+ $1.worker.turns.current : $0 }
  }
}

extension Strand {
  /// False when the worker has released the strand's nodes, or will use none of them again.
  var holdsRun: Bool { state.load(ordering: .acquiring) & State.closed == 0 || isInCall }

  /// True when the strand's worker is inside a node of this strand.
  var isInCall: Bool {
    let address = worker.leases.cellInCall
    let first = unsafe UInt(bitPattern: cells)
    let end = unsafe UInt(bitPattern: cells + cellCount)
    return address >= first && address < end
  }

  /// The name of the node of this strand that the worker is calling.
  func nodeInCall(of run: GraphRun) -> String? {
    let address = worker.leases.cellInCall
    guard isInCall, let cell = unsafe UnsafeMutablePointer<Cell>(bitPattern: address) else { return nil }
    return unsafe run.plan.nodes[cell.pointee.nodeIndex].name
  }

  /// Gives the worker a new thread, if it is still inside a node of this strand.
  func replaceThread() -> Worker.Replacement {
    let address = worker.leases.cellInCall
    return isInCall ? worker.replaceThread(stuckIn: address) : .kept
  }
}
