public import MillraceCore

/// The maximum memory that one run of a plan can use: the blocks of all pools, the rings, and the engine's state of each node.
///
/// Calculated before anything is allocated; the engine allocates its pools by the same numbers. A block becomes resident only when it
/// is first used, so a run whose links are never full uses far less.
///
/// Does *not* include what nodes allocate themselves (a codec, an echo canceller, the index of a file: some hundred kilobytes each), nor
/// recordings of tapped links. Sums saturate instead of overflowing.
public struct PlanMemory: Sendable, Hashable {
  /// Blocks of one size, which several links may share.
  public struct Pool: Sendable, Hashable {
    /// Usable bytes of each block.
    public let blockBytes: Int
    /// The number of blocks.
    public let blockCount: Int
    /// Bytes of all blocks, including headers.
    public var byteCount: Int { BlockPool.byteCount(blockBytes: blockBytes, blockCount: blockCount) }
  }

  /// The share of one part of the plan. The claims add up to the total.
  public struct Claim: Sendable, Hashable {
    /// A part of the plan that uses memory.
    public enum Owner: Sendable, Hashable {
      /// A link, by its index in the plan: its ring, and blocks for the packets in it and those in use by both nodes.
      case link(Int)
      /// A node, by its index in the plan: the engine's state of it, and blocks for unlinked outputs.
      case node(Int)
      /// The events of all nodes.
      case events
    }
    /// The part of the plan.
    public let owner: Owner
    /// The number of blocks.
    public let packets: Int
    /// Bytes of each block; 0 when it has none.
    public let packetBytes: Int
    /// Bytes of the claim.
    public let bytes: Int
  }

  /// The block pools that the engine allocates.
  public private(set) var pools: [Pool] = []
  /// For each output of each node, the index of its pool; nil when its blocks come from the event pool, or it has no packets.
  package private(set) var poolOfOutput: [[Int?]] = []
  /// The index of the pool for events; nil when there are none, or they have no listener.
  package private(set) var eventPool: Int?
  /// Whether events are delivered to the program.
  package let observesEvents: Bool
  /// The number of strands, each of which has an outbox when events are observed.
  package let strandCount: Int
  /// Whether the run waits rather than drop an event: none of its nodes follows the real-time clock.
  package let waitsForListeners: Bool
  /// The number of events that an outbox holds until the supervisor collects them.
  package let outboxLimit: Int
  /// The claims, the largest first.
  public private(set) var claims: [Claim] = []
  /// Bytes of all blocks.
  public private(set) var blockBytes = 0
  /// Bytes of all rings.
  public private(set) var linkBytes = 0
  /// Bytes of the engine's state of the nodes.
  public private(set) var nodeBytes = 0

  /// The total, in bytes.
  public var byteCount: Int { [blockBytes, linkBytes, nodeBytes].clampedSum }

  /// The maximum of the engine's state of a node besides its ports: its cell, mailbox, counters, histograms, the names of its events.
  package static let cellBytes = 4_096

  /// Calculates the memory of a plan.
  /// - Parameters:
  ///   - plan: a checked plan.
  ///   - clock: the clock of the engine; nil: that of the plan.
  ///   - observesEvents: whether events are delivered to the program, as set in `Engine.prepare`.
  public init(_ plan: GraphPlan, clock: Clock.Kind? = nil, observesEvents: Bool = true) {
    let isVirtual = (clock ?? plan.clock) == .virtual
    self.observesEvents = observesEvents && plan.nodes.contains { !$0.contract.events.isEmpty }
    let bulk = plan.nodes.count { $0.lane == .bulk }
    strandCount = isVirtual || bulk == 0 || bulk == plan.nodes.count ? 1 : 2
    waitsForListeners = isVirtual || plan.nodes.allSatisfy { $0.pacing == .waits }
    // 48 are 4,800 events a second. A run that waits for its listeners, which it does when the outbox is half full, needs enough for one
    // turn of a strand.
    outboxLimit = waitsForListeners ? 1_024 : 48
    countLinks(of: plan, isVirtual)
    countNodes(of: plan)
    countEvents(of: plan)
    blockBytes = pools.map(\.byteCount).clampedSum
    claims = claims.enumerated().sorted { ($1.element.bytes, $0.offset) < ($0.element.bytes, $1.offset) }
      .map(\.element)
  }

  // MARK: Links

  /// Adds a pool for each packet size, and the claims of the links.
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
      // Its packets come from the event pool.
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

  /// The sizes of one class differ by at most an eighth, or round up to the same multiple of 64 bytes.
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
      // A node may emit packets at an unlinked output: a block for the one in use, and one for each of a burst.
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

  /// Adds one pool for the events of all nodes, and the outboxes in which they wait for the supervisor.
  private mutating func countEvents(of plan: GraphPlan) {
    let senders = plan.nodes.count { !$0.contract.events.isEmpty }
    let linked = plan.links.filter { plan.isEventsPort($0.from) }
      .map { Link.bound(limit: $0.limit, policy: $0.policy, burst: $0.shape.burst) }.clampedSum
    guard senders > 0, observesEvents || linked > 0 else { return }
    let waiting = observesEvents ? strandCount * (outboxLimit + 1) : 0
    // A node with larger events than usual sets their size in its `resolve`.
    let largest =
      plan.nodes.flatMap(\.outputs).filter { $0.name == NodeContract.eventsPort }
      .compactMap { $0.shape?.packetBytes }.max() ?? 0
    let pool = add(
      blockBytes: max(largest, EventWriter.eventBytes),
      blockCount: [linked, waiting, 2 * senders].clampedSum)
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
  /// Whether an output is the events port, whose blocks come from the event pool.
  fileprivate func isEventsPort(_ end: End) -> Bool {
    nodes[end.node].outputs[end.port].name == NodeContract.eventsPort
  }

  /// The number of blocks that packets of a link can occupy: those in the link, those in use by both nodes, those the reader keeps.
  package func blocks(of link: Link) -> Int {
    let bound = MillraceCore.Link.bound(limit: link.limit, policy: link.policy, burst: link.shape.burst)
    return [bound, link.shape.burst + 1, nodes[link.to.node].heldPackets[link.to.port]].clampedSum
  }
}
