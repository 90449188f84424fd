internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

extension GraphRun {
  /// Reads every counter. Under the status lock, which keeps the memory in place.
  func makeReport(_ status: borrowing Status, at time: Nanoseconds) -> RunReport {
    let first = firstPacketTime.load(ordering: .relaxed)
    return RunReport(
      name: name, phase: status.phase, clock: engine.clock, duration: time,
      timeToFirstPacket: first == 0 ? nil : first - status.askedAt, failure: status.failure,
      nodes: nodeReports(), links: linkReports(), poolBytes: poolBytes, leakedBlocks: status.leakedBlocks,
      detachedNodes: status.detached, lostEvents: lostEvents())
  }

  private func nodeReports() -> [NodeReport] {
    guard let memory = memory else { return [] }
    let scale = TickScale.machine
    let followsClock = plan.nodes.contains { $0.pacing != .waits }
    return plan.nodes.indices.map { index in
      let node = plan.nodes[index]
      let counters = unsafe memory.cellCounters + index
      let emitted = plan.links.indices.filter { plan.links[$0].from.node == index }
        .reduce(0) { sum, link in unsafe sum + memory.linkCounters[link].pushed.current }
      let packets = unsafe counters.pointee.packets.current
      let hasAge = followsClock && packets > 0
      return unsafe NodeReport(
        name: node.name, type: node.contract.type, lane: node.lane,
        activations: counters.pointee.activations.current, packetsIn: packets, packetsOut: emitted,
        busy: scale.nanoseconds(UInt64(counters.pointee.busyTicks.current)),
        worst: scale.nanoseconds(UInt64(counters.pointee.worstTicks.current)),
        overBudget: counters.pointee.overBudget.current, budget: node.budget,
        blocked: counters.pointee.blocked.current, starved: counters.pointee.starved.current,
        restarts: counters.pointee.restarts.current,
        lastAge: hasAge ? Nanoseconds(counters.pointee.lastAge.current) : nil,
        worstAge: hasAge ? Nanoseconds(counters.pointee.worstAge.current) : nil)
    }
  }

  private func linkReports() -> [LinkReport] {
    guard let memory = memory else { return [] }
    return plan.links.indices.map { index in
      let link = plan.links[index]
      let counters = unsafe memory.linkCounters + index
      return unsafe LinkReport(
        name: plan.describe(link), format: link.shape.format, limit: link.limit, policy: link.policy,
        pushed: counters.pointee.pushed.current, popped: counters.pointee.popped.current,
        droppedOldest: counters.pointee.droppedOldest.current,
        droppedNewest: counters.pointee.droppedNewest.current,
        droppedStale: counters.pointee.droppedStale.current, discarded: counters.pointee.discarded.current,
        highWater: counters.pointee.highWater.current)
    }
  }

  private func lostEvents() -> Int {
    guard let memory = memory else { return 0 }
    var lost = 0
    for index in plan.links.count..<memory.linkCounterCount {
      lost += unsafe memory.linkCounters[index].droppedNewest.current
    }
    return lost
  }
}
