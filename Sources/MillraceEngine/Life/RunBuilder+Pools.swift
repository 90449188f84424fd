internal import MillraceCore
internal import MillraceGraph

extension RunBuilder {
  /// For each linked output of each node, the pool of its blocks. Outputs whose packets are of nearly the same size share one.
  ///
  /// Every run makes its own pools and frees them: some microseconds, since a pool is one allocation whose memory is only touched
  /// as it is used.
  func makePools() -> [[BlockPool?]] {
    var needs: [Int: (bytes: Int, count: Int)] = [:]
    for link in plan.links where !isEventsPort(link.from) {
      let key = Self.sizeClass(link.shape)
      let old = needs[key] ?? (0, 0)
      needs[key] = (max(old.bytes, link.shape.madeBytes), old.count + blocks(of: link))
    }
    var made: [Int: BlockPool] = [:]
    for (key, need) in needs { made[key] = makePool(blockBytes: need.bytes, blockCount: need.count) }
    return plan.nodes.indices.map { node in
      plan.nodes[node].outputs.indices.map { port in
        guard let link = leaving[GraphPlan.End(node: node, port: port)]?.first else {
          return spare(plan.nodes[node].outputs[port])
        }
        return isEventsPort(plan.links[link].from) ? nil : made[Self.sizeClass(plan.links[link].shape)]
      }
    }
  }

  /// Blocks that packets of a link can occupy: what waits in it, what both nodes hold in their hands, what the reader keeps.
  private func blocks(of link: GraphPlan.Link) -> Int {
    let held = plan.nodes[link.to.node].heldPackets[link.to.port]
    return Link.bound(limit: link.limit, policy: link.policy, burst: link.shape.burst) + link.shape.burst + 1
      + held
  }

  /// Packets of one class differ by an eighth in size at most, or lie in the same 64 bytes.
  private static func sizeClass(_ shape: OutputShape) -> Int {
    let bytes = (max(1, shape.madeBytes) + 63) & ~63
    let octave = Int.bitWidth - 1 - bytes.leadingZeroBitCount
    let step = max(64, 1 << max(0, octave - 3))
    return (bytes + step - 1) / step * step
  }

  /// A node may make packets for an output nobody listens to: two blocks serve for that.
  private func spare(_ port: NodeSetup.Port) -> BlockPool? {
    guard let shape = port.shape, port.name != NodeContract.eventsPort else { return nil }
    return makePool(blockBytes: shape.madeBytes, blockCount: 1 + shape.burst)
  }

  private func makePool(blockBytes: Int, blockCount: Int) -> BlockPool {
    let pool = BlockPool(blockBytes: max(1, blockBytes), blockCount: blockCount)
    memory.pools.append(pool)
    run.poolBytes += pool.byteCount
    return pool
  }

  // MARK: Events

  /// True for the output every node with events has: its blocks come from the event pool.
  private func isEventsPort(_ end: GraphPlan.End) -> Bool {
    plan.nodes[end.node].outputs[end.port].name == NodeContract.eventsPort
  }

  /// One pool for the events of all nodes; nil when there are none or nobody listens.
  func makeEventPool() -> BlockPool? {
    let speaking = plan.nodes.count { !$0.contract.events.isEmpty }
    guard speaking > 0 else { return nil }
    let linked = plan.links.filter { isEventsPort($0.from) }
      .reduce(0) { $0 + Link.bound(limit: $1.limit, policy: $1.policy, burst: $1.shape.burst) }
    guard observesEvents || linked > 0 else { return nil }
    let count = linked + (observesEvents ? strands.count * (outboxLimit + 1) : 0) + 2 * speaking
    // A node whose events are longer than usual says so in its `resolve`.
    let wanted =
      plan.nodes.flatMap(\.outputs).filter { $0.name == NodeContract.eventsPort }
      .compactMap { $0.shape?.packetBytes }.max() ?? 0
    return makePool(blockBytes: max(wanted, EventWriter.eventBytes), blockCount: count)
  }
}
