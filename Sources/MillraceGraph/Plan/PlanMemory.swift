public import MillraceCore

/// The memory that one run of a plan takes at most: every block of every pool, every ring, and what the engine keeps of each node.
///
/// It is calculated before anything is made, and the engine makes its pools by the same numbers. Blocks become real memory only when
/// packets are under way in them for the first time, so a run whose links are never full takes far less.
///
/// It does *not* hold what nodes allocate themselves (a codec, an echo canceller, a file's index: some hundred kilobytes each), nor
/// what is recorded of a link while somebody listens in on it. Sums stop at the largest number instead of overflowing.
public struct PlanMemory: Sendable, Hashable {
  /// Blocks of one size that several links may share.
  public struct Pool: Sendable, Hashable {
    /// Usable bytes of each block.
    public let blockBytes: Int
    /// Blocks.
    public let blockCount: Int
    /// Bytes of all of them, headers included.
    public var byteCount: Int { BlockPool.byteCount(blockBytes: blockBytes, blockCount: blockCount) }
  }

  /// What one part of the plan takes of the whole. All claims together are the whole.
  public struct Claim: Sendable, Hashable {
    /// Whose claim it is.
    public enum Owner: Sendable, Hashable {
      /// A link, by its index in the plan: its ring, and blocks for what waits in it and what both nodes have in hand.
      case link(Int)
      /// A node, by its index in the plan: what the engine keeps of it, and blocks for outputs that lead nowhere.
      case node(Int)
      /// The events of all nodes.
      case events
    }
    /// Whose claim it is.
    public let owner: Owner
    /// Packets that it has blocks for.
    public let packets: Int
    /// Bytes of each block; 0 when it has none.
    public let packetBytes: Int
    /// Bytes of the claim.
    public let bytes: Int
  }

  /// The pools of blocks the engine makes.
  public private(set) var pools: [Pool] = []
  /// For each output of each node, the index of its pool; nil where its blocks come from the event pool, or it makes no packets.
  package private(set) var poolOfOutput: [[Int?]] = []
  /// The index of the pool of all nodes' events; nil when there are none, or nobody hears them.
  package private(set) var eventPool: Int?
  /// True when nodes' events are carried to the program.
  package let observesEvents: Bool
  /// Workers a run's nodes are spread over: each has an outbox where events are observed.
  package let strandCount: Int
  /// Whether the run waits rather than lose an event: nothing in it follows the real clock.
  package let waitsForListeners: Bool
  /// Events an outbox holds between two looks of the supervisor.
  package let outboxLimit: Int
  /// What takes how much, the largest first.
  public private(set) var claims: [Claim] = []
  /// Bytes of all blocks.
  public private(set) var blockBytes = 0
  /// Bytes of all rings.
  public private(set) var linkBytes = 0
  /// Bytes of what the engine keeps of the nodes.
  public private(set) var nodeBytes = 0

  /// Bytes of everything.
  public var byteCount: Int { [blockBytes, linkBytes, nodeBytes].clampedSum }

  /// What the engine keeps of a node besides its ports, at most: its place in the scheduler, mailbox, counters, histograms, the names of
  /// its events.
  package static let cellBytes = 4_096

  /// Calculates what a plan takes.
  /// - Parameters:
  ///   - plan: a checked plan.
  ///   - clock: the clock of the engine; nil: the one the plan asks for.
  ///   - observesEvents: whether events are carried to the program, as `Engine.prepare` is told.
  public init(_ plan: GraphPlan, clock: Clock.Kind? = nil, observesEvents: Bool = true) {
    let isVirtual = (clock ?? plan.clock) == .virtual
    self.observesEvents = observesEvents && plan.nodes.contains { !$0.contract.events.isEmpty }
    let bulk = plan.nodes.count { $0.lane == .bulk }
    strandCount = isVirtual || bulk == 0 || bulk == plan.nodes.count ? 1 : 2
    waitsForListeners = isVirtual || plan.nodes.allSatisfy { $0.pacing == .waits }
    // 4,800 events a second. Of a run that waits for its listeners, and does so when half of them are used, enough for one turn of a
    // strand.
    outboxLimit = waitsForListeners ? 1_024 : 48
    countLinks(of: plan, isVirtual)
    countNodes(of: plan)
    countEvents(of: plan)
    blockBytes = pools.map(\.byteCount).clampedSum
    claims = claims.enumerated().sorted { ($1.element.bytes, $0.offset) < ($0.element.bytes, $1.offset) }
      .map(\.element)
  }

  // MARK: Links

  /// Pools for what links carry, one for each size, and the links' claims on them.
  private mutating func countLinks(of plan: GraphPlan, _ isVirtual: Bool) {
    var needs: [Int: (bytes: Int, count: Int)] = [:]
    for link in plan.links where !plan.isEventsPort(link.from) {
      let key = Self.sizeClass(link.shape)
      let old = needs[key] ?? (0, 0)
      needs[key] = (max(old.bytes, link.shape.madeBytes), old.count.addingClamped(plan.blocks(of: link)))
    }
    var indices: [Int: Int] = [:]
    for (key, need) in needs.sorted(by: { $0.key < $1.key }) {
      indices[key] = add(blockBytes: need.bytes, blockCount: need.count)
    }
    poolOfOutput = plan.nodes.map { Array(repeating: nil, count: $0.outputs.count) }
    for (index, link) in plan.links.enumerated() {
      let isLocal =
        isVirtual || (plan.nodes[link.from.node].lane == .bulk) == (plan.nodes[link.to.node].lane == .bulk)
      let ring = Link.byteCount(
        limit: link.limit, policy: link.policy, burst: max(1, link.shape.burst), isLocal: isLocal)
      linkBytes = linkBytes.addingClamped(ring)
      // The event pool has blocks for its packets.
      let pool = plan.isEventsPort(link.from) ? nil : indices[Self.sizeClass(link.shape)]
      let packets = pool == nil ? 0 : plan.blocks(of: link)
      let packetBytes = pool.map { pools[$0].blockBytes } ?? 0
      let blocks =
        pool == nil ? 0 : BlockPool.byteCount(blockBytes: packetBytes, blockCount: packets)
      claims.append(
        Claim(
          owner: .link(index), packets: packets, packetBytes: packetBytes, bytes: ring.addingClamped(blocks)))
      if let pool { poolOfOutput[link.from.node][link.from.port] = pool }
    }
  }

  /// Packets of one class differ by an eighth in size at most, or lie in the same 64 bytes.
  private static func sizeClass(_ shape: OutputShape) -> Int {
    let bytes = (max(1, shape.madeBytes) + 63) & ~63
    let octave = Int.bitWidth - 1 - bytes.leadingZeroBitCount
    let step = max(64, 1 << max(0, octave - 3))
    return (bytes + step - 1) / step * step
  }

  private mutating func add(blockBytes: Int, blockCount: Int) -> Int {
    pools.append(Pool(blockBytes: max(1, blockBytes), blockCount: blockCount))
    return pools.count - 1
  }

  // MARK: Nodes

  private mutating func countNodes(of plan: GraphPlan) {
    let linked = Set(plan.links.map(\.from))
    for (index, node) in plan.nodes.enumerated() {
      let kept = unsafe [
        Self.cellBytes, node.inputs.count * MemoryLayout<InputSlot>.stride,
        node.outputs.count * MemoryLayout<OutputSlot>.stride, node.channelBytes,
      ].clampedSum
      nodeBytes = nodeBytes.addingClamped(kept)
      var (bytes, packets, packetBytes) = (kept, 0, 0)
      // A node may make packets for an output nobody listens to: a block for what it has in hand, and one for each of a call.
      for (port, output) in node.outputs.enumerated() {
        let end = GraphPlan.End(node: index, port: port)
        guard let shape = output.shape, !linked.contains(end), !plan.isEventsPort(end) else { continue }
        let pool = add(blockBytes: shape.madeBytes, blockCount: 1 + shape.burst)
        poolOfOutput[index][port] = pool
        packets += pools[pool].blockCount
        packetBytes = max(packetBytes, pools[pool].blockBytes)
        bytes = bytes.addingClamped(pools[pool].byteCount)
      }
      claims.append(Claim(owner: .node(index), packets: packets, packetBytes: packetBytes, bytes: bytes))
    }
  }

  // MARK: Events

  /// One pool for the events of all nodes, and the outboxes in which they wait for the supervisor.
  private mutating func countEvents(of plan: GraphPlan) {
    let speaking = plan.nodes.count { !$0.contract.events.isEmpty }
    let linked = plan.links.filter { plan.isEventsPort($0.from) }
      .map { Link.bound(limit: $0.limit, policy: $0.policy, burst: $0.shape.burst) }.clampedSum
    guard speaking > 0, observesEvents || linked > 0 else { return }
    let waiting = observesEvents ? strandCount * (outboxLimit + 1) : 0
    // A node whose events are longer than usual says so in its `resolve`.
    let wanted =
      plan.nodes.flatMap(\.outputs).filter { $0.name == NodeContract.eventsPort }
      .compactMap { $0.shape?.packetBytes }.max() ?? 0
    let pool = add(
      blockBytes: max(wanted, EventWriter.eventBytes),
      blockCount: [linked, waiting, 2 * speaking].clampedSum)
    eventPool = pool
    let outbox = Link.byteCount(limit: outboxLimit, policy: .dropNewest, burst: 1, isLocal: false)
    let outboxes = observesEvents ? strandCount * outbox : 0
    linkBytes = linkBytes.addingClamped(outboxes)
    claims.append(
      Claim(
        owner: .events, packets: pools[pool].blockCount, packetBytes: pools[pool].blockBytes,
        bytes: pools[pool].byteCount.addingClamped(outboxes)))
  }
}

extension GraphPlan {
  /// True for the output every node with events has: its blocks come from the event pool.
  fileprivate func isEventsPort(_ end: End) -> Bool {
    nodes[end.node].outputs[end.port].name == NodeContract.eventsPort
  }

  /// Blocks that packets of a link can occupy: what waits in it, what both nodes hold in their hands, what the reader keeps.
  package func blocks(of link: Link) -> Int {
    let bound = MillraceCore.Link.bound(limit: link.limit, policy: link.policy, burst: link.shape.burst)
    return [bound, link.shape.burst + 1, nodes[link.to.node].heldPackets[link.to.port]].clampedSum
  }
}
