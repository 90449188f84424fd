internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

extension GraphRun {
  /// True while a failed node may be made anew.
  var canRestart: Bool {
    status.withLock { $0.phase == .running || $0.phase == .draining }
  }

  /// A fault in words: the node's own, with all secrets taken out, or the engine's for the reason. The node is not being
  /// called.
  func explain(_ fault: NodeFault, of node: Int) -> String {
    let place = places[node]
    let cell = unsafe place.strand.cells + place.index
    if let text = unsafe cell.pointee.executor._withUnsafeGuaranteedRef({ $0.explain(fault) }) {
      return secrets.removed(from: text)
    }
    return switch fault.reason {
    case .badInput: "the input is not what its format says (code \(fault.code), position \(fault.detail))"
    case .system: "the system refused: \(SystemError.text(fault.code))"
    case .library: "the library behind it answered error \(fault.code)"
    case .poolEmpty:
      "no free block was left in the graph's pool; a node keeps more packets than its contract says"
    case .outputFull: explainFull(Int(fault.code), Int(fault.detail), of: node)
    case .gone: "what it depends on is gone (code \(fault.code))"
    case .stalled: "nothing came for \(fault.detail / 1_000_000) ms"
    case .refused:
      "the service behind it refused (code \(fault.code)); look at its key, its quota and its certificate"
    case .custom: "it failed with code \(fault.code), detail \(fault.detail)"
    }
  }

  /// Which link of a node's output had no room, and what to do about it.
  private func explainFull(_ output: Int, _ number: Int, of node: Int) -> String {
    let links = plan.links.filter { $0.from == GraphPlan.End(node: node, port: output) }
    guard links.indices.contains(number) else {
      return "it emitted more packets than its output has room for"
    }
    let link = links[number]
    let name = Problem.quoted(plan.describe(link))
    if link.policy == .fail {
      return "link \(name) was full with \(link.limit) packets, and its policy is \"fail\"; "
        + "give it more capacity, or another policy"
    }
    return
      "it emitted more packets into link \(name) in one call than the \(link.shape.burst) its contract allows; "
      + "report it to the node's author"
  }

  /// Leaves a verdict on a failed node for its worker.
  func decide(_ verdict: Verdict, on node: Int) {
    status.withLock { $0.verdicts[node] = verdict }
    places[node].strand.ask(Strand.Request.replace)
  }

  /// Makes a node of the plan once more. Its objection holds no secret. Control side.
  func makeAnew(_ node: Int) -> Result<AnyExecutor, NodeProblem> {
    let planned = plan.nodes[node]
    guard let entry = engine.catalogue[planned.contract.type] else {
      return .failure(NodeProblem("type \"\(planned.contract.type)\" is not in the engine's catalogue"))
    }
    do throws(NodeProblem) {
      return .success(try entry.make(RunBuilder.setup(node, of: self)))
    } catch {
      return .failure(secrets.removed(from: error))
    }
  }

  /// Writes the final report, frees the run's memory (unless a lost thread still has it), tells everyone.
  func close(releasing: Bool) {
    let time = graphTime
    let wasStarted = status.withLock { $0.askedAt != 0 }
    tellMissedBudgets(at: Nanoseconds.max)
    appointments.cancel()
    dropUnusedNodes()
    if releasing { releaseQueued() }
    closeTaps(releasing: releasing)
    let leaked = releasing ? returnPools() : 0
    endEvents(at: time)
    let (report, waiters, listeners) = status.withLock { status in
      status.phase = .stopped
      status.stoppedAt = time
      status.leakedBlocks = leaked
      let report = makeReport(status, at: time)
      status.finalReport = report
      defer {
        status.waiters = []
        status.listeners = [:]
      }
      return (report, status.waiters, Array(status.listeners.values))
    }
    // One may have come in the meantime.
    for listener in listeners { listener.finish() }
    if releasing { releaseMemory() }
    for strand in strands { strand.worker.load.subtract(1, ordering: .relaxed) }
    engine.setRefusal(nil, of: id)
    if wasStarted { engine.runEnded() }
    for waiter in waiters { waiter.resume(returning: report) }
    publishStopped()
  }

  /// Drops nodes that were made anew for a run that stopped before it took them.
  private func dropUnusedNodes() {
    let verdicts = status.withLock { status in
      defer { status.verdicts = [:] }
      return status.verdicts
    }
    for case .replace(let executor) in verdicts.values { unsafe executor.release() }
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
    closeTaps(releasing: true)
    _ = returnPools()
  }

  /// Lets the pools go; answers the blocks that nodes still hold.
  private func returnPools() -> Int {
    guard let memory = memory else { return 0 }
    var leaked = 0
    for pool in memory.pools {
      let missing = pool.blockCount - pool.freeCount
      if missing > 0 {
        leaked += missing
        // A block out there points at its pool: the pool must outlive it.
        _ = unsafe Unmanaged.passRetained(pool)
      }
    }
    return leaked
  }

  private func releaseMemory() {
    status.withLock { _ in memory = nil }
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
