internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

extension GraphRun {
  /// True while a failed node may be made anew.
  var canRestart: Bool {
    status.withLock { $0.phase == .running || $0.phase == .draining }
  }

  /// True when events are collected for the program.
  var hasOutbox: Bool { unsafe memory?.outboxes.isEmpty == false }

  /// A fault in words: the node's own, or the engine's for the reason. The node is not being called.
  func explain(_ fault: NodeFault, of node: Int) -> String {
    let place = places[node]
    let cell = unsafe place.strand.cells + place.index
    if let text = unsafe cell.pointee.executor._withUnsafeGuaranteedRef({ $0.explain(fault) }) { return text }
    return switch fault.reason {
    case .badInput: "the input is not what its format says (code \(fault.code), position \(fault.detail))"
    case .system: "the system refused: \(ErrorNumber.text(fault.code))"
    case .library: "the library behind it answered error \(fault.code)"
    case .poolEmpty:
      "no free block was left in the graph's pool; a node keeps more packets than its contract says"
    case .outputFull:
      "it emitted more packets in one call than its contract's burst allows, or a link with policy \"fail\" was full"
    case .gone: "what it depends on is gone (code \(fault.code))"
    case .stalled: "nothing came for \(fault.detail / 1_000_000) ms"
    case .custom: "it failed with code \(fault.code), detail \(fault.detail)"
    }
  }

  /// Leaves a verdict on a failed node for its worker.
  func decide(_ verdict: Verdict, on node: Int) {
    status.withLock { $0.verdicts[node] = verdict }
    places[node].strand.ask(Strand.Request.replace)
  }

  /// Makes a node of the plan once more. Control side.
  func makeAnew(_ node: Int) -> Result<AnyExecutor, NodeProblem> {
    let planned = plan.nodes[node]
    guard let entry = engine.catalogue[planned.contract.type] else {
      return .failure(NodeProblem("type \"\(planned.contract.type)\" is not in the engine's catalogue"))
    }
    let place = places[node]
    let setup = RunBuilder.setup(
      planned, isVirtual: engine.clock == .virtual, strand: place.strand, index: place.index)
    do throws(NodeProblem) { return .success(try entry.make(setup)) } catch { return .failure(error) }
  }

  /// Moves events from the workers' outboxes to the listeners. Only the supervisor.
  func carryEvents() {
    guard let memory = memory else { return }
    for number in unsafe memory.outboxes.indices {
      let outbox = unsafe memory.outboxes[number]
      while let packet = unsafe outbox.pointee.take(generation: 0) {
        let node = plan.nodes[min(packet.duration, plan.nodes.count - 1)]
        let index = Int(packet.position)
        let bytes = packet.samples(of: UInt8.self)
        let json = unsafe String(unsafeUninitializedCapacity: bytes.count) { buffer in
          for index in bytes.indices { unsafe buffer[index] = bytes[index] }
          return bytes.count
        }
        let name = index < node.contract.events.count ? node.contract.events[index].name : ""
        hand(GraphEvent(time: packet.timestamp, node: node.name, name: name, json: json))
      }
    }
  }

  /// Writes the final report, frees the run's memory (unless a lost thread still has it), tells everyone.
  func close(releasing: Bool) {
    let time = graphTime
    let wasStarted = status.withLock { $0.askedAt != 0 }
    dropUnusedNodes()
    if releasing { releaseQueued() }
    let leaked = releasing ? returnPools() : 0
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
    var writer = JSONWriter()
    writer.object { json in
      json.member("time", Double(time) / 1e9)
      json.member("event", "stopped")
    }
    for listener in listeners {
      listener.yield(GraphEvent(time: time, node: "", name: "stopped", json: writer.text))
      listener.finish()
    }
    if releasing { releaseMemory() }
    for strand in strands { strand.worker.load.subtract(1, ordering: .relaxed) }
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
    _ = returnPools()
  }

  /// Hands whole pools back to the depot; answers the blocks that nodes still hold.
  private func returnPools() -> Int {
    guard let memory = memory else { return 0 }
    var leaked = 0
    for pool in memory.pools {
      let missing = pool.blockCount - pool.freeCount
      if missing == 0 {
        engine.depot.give(pool)
      } else {
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

extension Strand {
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
  func replaceThread() -> Bool {
    let address = worker.cellInCall
    return isInCall && worker.replaceThread(stuckIn: address)
  }
}
