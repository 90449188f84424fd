internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

extension GraphRun {
  /// What a report takes from the control side's status. It retains the run's counters.
  struct StatusSnapshot {
    var phase: RunPhase
    var startRequestedAt: Nanoseconds
    var failure: RunFailure?
    var partReports: [RunReport]
    var leakedBlocks: Int
    var detached: [String]
    var memory: RunMemory?
  }

  /// Called under the status lock, so it does little work.
  func snapshot(_ status: borrowing Status) -> StatusSnapshot {
    StatusSnapshot(
      phase: status.phase, startRequestedAt: status.startRequestedAt, failure: status.failure,
      partReports: status.partReports, leakedBlocks: status.leakedBlocks, detached: status.detached,
      memory: memory)
  }

  /// Reads every counter and histogram. Called without a lock.
  func makeReport(_ snapshot: StatusSnapshot, at time: Nanoseconds) -> RunReport {
    let first = firstPacketTime.load(ordering: .relaxed)
    return RunReport(
      name: name, phase: snapshot.phase, clock: engine.clock, duration: time,
      timeToFirstPacket: first == 0 ? nil : first - snapshot.startRequestedAt, failure: snapshot.failure,
      nodes: snapshot.memory.map(nodeReports) ?? [], links: snapshot.memory.map(linkReports) ?? [],
      liveLinks: liveLinks, parts: snapshot.partReports + parts.withLock { $0.runs }.map { $0.report() },
      poolBytes: poolBytes, leakedBlocks: snapshot.leakedBlocks, detachedNodes: snapshot.detached,
      lostEvents: lostEvents(snapshot))
  }

  private func nodeReports(_ memory: RunMemory) -> [NodeReport] {
    let scale = TickScale.machine
    let followsClock = plan.nodes.contains { $0.pacing != .waits }
    var emitted = [Int](repeating: 0, count: plan.nodes.count)
    for (index, link) in plan.links.enumerated() {
      unsafe emitted[link.from.node] += memory.linkCounters[index].pushed.current
    }
    return plan.nodes.indices.map { index in
      let node = plan.nodes[index]
      let counters = unsafe memory.cellCounters + index
      let packets = unsafe counters.pointee.packets.current
      let hasAge = followsClock && packets > 0
      let worst = unsafe scale.nanoseconds(UInt64(counters.pointee.worstTicks.current))
      return unsafe NodeReport(
        name: node.name, type: node.contract.type, lane: node.lane, isSink: node.isSink,
        activations: counters.pointee.activations.current, packetsIn: packets, packetsOut: emitted[index],
        busy: scale.nanoseconds(UInt64(counters.pointee.busyTicks.current)),
        worst: worst,
        overBudget: counters.pointee.overBudget.current, budget: node.budget,
        overAge: counters.pointee.overAge.current, maxAge: node.maxAge,
        blocked: counters.pointee.blocked.current, starved: counters.pointee.starved.current,
        restarts: counters.pointee.restarts.current,
        lastAge: hasAge ? Nanoseconds(counters.pointee.lastAge.current) : nil,
        worstAge: hasAge ? Nanoseconds(counters.pointee.worstAge.current) : nil,
        callTimes: counters.pointee.callTimes.pointee.read(largest: worst) { scale.nanoseconds($0) },
        ages: hasAge ? self.ages(counters) : nil)
    }
  }

  private func ages(_ counters: UnsafeMutablePointer<CellCounters>) -> Histogram? {
    guard let ages = unsafe counters.pointee.ages else { return nil }
    return unsafe ages.pointee.read(largest: Nanoseconds(counters.pointee.worstAge.current)) {
      Nanoseconds($0)
    }
  }

  /// Packets now queued in each link of the plan, as `LinkReport.queued`; empty after the run has stopped. Costs a few loads per
  /// link, for frequent polling.
  public var queued: [Int] {
    let held = status.withLock { $0.finalReport == nil ? memory : nil }
    guard let memory = held else { return [] }
    return plan.links.indices.map { unsafe memory.linkCounters[$0].queued }
  }

  private func linkReports(_ memory: RunMemory) -> [LinkReport] {
    plan.links.indices.map { index in
      let link = plan.links[index]
      let counters = unsafe memory.linkCounters + index
      return unsafe LinkReport(
        name: plan.describe(link), format: link.shape.format, limit: link.limit, policy: link.policy,
        pushed: counters.pointee.pushed.current, popped: counters.pointee.popped.current,
        droppedOldest: counters.pointee.droppedOldest.current,
        droppedNewest: counters.pointee.droppedNewest.current,
        droppedStale: counters.pointee.droppedStale.current,
        droppedShed: counters.pointee.droppedShed.current, discarded: counters.pointee.discarded.current,
        queued: counters.pointee.queued, highWater: counters.pointee.highWater.current)
    }
  }

  private func lostEvents(_ snapshot: StatusSnapshot) -> Int {
    var lost = listeners.lostCount
    guard let memory = snapshot.memory else { return lost }
    for index in plan.links.count..<memory.linkCounterCount {
      lost += unsafe memory.linkCounters[index].droppedNewest.current
    }
    return lost
  }
}
