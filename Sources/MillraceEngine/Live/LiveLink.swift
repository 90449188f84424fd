internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// One end of a live link: a port of a node of a run.
@safe
struct LiveEnd: Hashable, Sendable {
  let run: GraphRun
  let end: GraphPlan.End

  static func == (one: LiveEnd, other: LiveEnd) -> Bool { one.run === other.run && one.end == other.end }

  func hash(into hasher: inout Hasher) {
    hasher.combine(run.id)
    hasher.combine(end)
  }

  var node: GraphPlan.Node { run.plan.nodes[end.node] }
  /// The node's strand and its index there.
  var place: (strand: Strand, index: Int) { run.places[end.node] }

  /// As shown in messages: `mic`, `recorder/rec.in`.
  func described(isInput: Bool) -> String { run.path + run.plan.describe(end, isInput: isInput) }
}

/// A live link: a link made while its graphs run, with its own ring, counters and blocks. Packets are copied in, so neither side
/// holds memory of the other.
///
/// Both sides retain it: the writer until its worker uses the new layout, the reader until its worker has read the last packet.
/// Blocks that nodes downstream still hold then outlive it in its pool.
@safe
final class LiveLink: @unchecked Sendable {
  let name: String
  let shape: OutputShape
  let limit: Int
  let policy: LinkPolicy
  /// The ends, by the numbers of their runs.
  let from: (run: Int, end: GraphPlan.End)
  let to: (run: Int, end: GraphPlan.End)
  private(set) weak var writer: GraphRun?
  private(set) weak var reader: GraphRun?
  /// The strands that the ends of the ring wake.
  private let strands: (writer: Strand, reader: Strand)
  private let counted: UnsafeMutablePointer<LinkCounters>
  private let memory: UnsafeMutablePointer<Link>
  private let translation: UnsafeMutablePointer<LinkTranslation>
  private let pool: BlockPool
  private let claim: MemoryClaim
  private let supervisor: Supervisor
  /// Its input may get another link although its writer has not ended yet. Under the topology's lock.
  var isLeaving = false

  /// The most memory a link takes.
  struct Needs {
    var blockBytes: Int
    var blockCount: Int
    var byteCount: Int
  }

  /// - Parameter needs: as computed by `needs`; already claimed.
  init(
    from: LiveEnd, to: LiveEnd, shape: OutputShape, terms: (limit: Int, policy: LinkPolicy), needs: Needs,
    claim: MemoryClaim
  ) throws(AllocationError) {
    name = "\(from.described(isInput: false)) -> \(to.described(isInput: true))"
    self.shape = shape
    (limit, policy) = terms
    self.from = (from.run.id, from.end)
    self.to = (to.run.id, to.end)
    writer = from.run
    reader = to.run
    strands = (from.place.strand, to.place.strand)
    supervisor = from.run.engine.supervisor
    self.claim = claim
    pool = try BlockPool(reserving: needs.blockCount, blocksOf: needs.blockBytes)
    unsafe counted = .allocate(capacity: 1)
    unsafe counted.initialize(to: LinkCounters())
    unsafe translation = .allocate(capacity: 1)
    unsafe translation.initialize(to: LinkTranslation())
    unsafe translation.pointee.keepsReplies = from.run.reply === to.run.reply
    unsafe memory = .allocate(capacity: 1)
    unsafe memory.initialize(
      to: Link(
        limit: limit, policy: policy, burst: max(1, shape.burst), counters: counted,
        consumer: Wake(
          remote: Unmanaged.passUnretained(to.place.strand as RemoteWake), index: to.place.index),
        producer: Wake(
          remote: Unmanaged.passUnretained(from.place.strand as RemoteWake), index: from.place.index),
        copies: pool, translation: UnsafePointer(translation)))
  }

  deinit {
    unsafe memory.deinitialize(count: 1)
    unsafe memory.deallocate()
    unsafe translation.deallocate()
    unsafe counted.deallocate()
    if !pool.hasAllBlocks {
      supervisor.lingering.add(pool, claim)
      supervisor.wake()
    }
  }

  var address: UnsafeMutablePointer<Link> { unsafe memory }
  var counters: UnsafeMutablePointer<LinkCounters> { unsafe counted }

  /// Sets the offset of timestamps and positions between its graphs. On the writer's worker, before the first packet. False while
  /// the offset is not known.
  func translate() -> Bool {
    guard let writer, let reader, writer !== reader else { return true }
    let (there, here) = (writer.epoch.load(ordering: .acquiring), reader.epoch.load(ordering: .acquiring))
    guard there != Nanoseconds.max && here != Nanoseconds.max else { return false }
    let shift = there &- here
    unsafe translation.pointee.time = shift
    if let rate = shape.format.rate {
      unsafe translation.pointee.samples = Int64((Double(shift) * Double(rate) / 1e9).rounded())
    }
    return true
  }

  /// The memory of a link between two ends: blocks for the packets queued in it, those in use by both nodes, those the reader
  /// keeps, and those its graph forwards without copying.
  static func needs(
    from: LiveEnd, to: LiveEnd, _ shape: OutputShape, _ terms: (limit: Int, policy: LinkPolicy)
  ) -> Needs {
    let bytes = max(shape.packetBytes, shape.format == .event ? EventWriter.eventBytes : 1)
    let burst = max(1, shape.burst)
    let count = [
      Link.bound(limit: terms.limit, policy: terms.policy, burst: burst), burst + 1,
      to.node.heldPackets[to.end.port], to.run.plan.blocksHandedOn(from: to.end.node, shape.format),
    ].clampedSum
    let ring = Link.byteCount(limit: terms.limit, policy: terms.policy, burst: burst, isLocal: false)
    return Needs(
      blockBytes: bytes, blockCount: count,
      byteCount: ring.addingClamped(BlockPool.byteCount(blockBytes: bytes, blockCount: count)))
  }
}

extension GraphPlan {
  /// The blocks that links downstream of a node hold when every node forwards packets of a format without copying.
  fileprivate func blocksHandedOn(from node: Int, _ format: Format) -> Int {
    var seen: Set<Int> = [node]
    var open = [node]
    var sum = 0
    while let node = open.popLast() {
      for link in links where link.from.node == node && link.shape.format == format {
        sum = sum.addingClamped(blocks(of: link))
        if seen.insert(link.to.node).inserted { open.append(link.to.node) }
      }
    }
    return sum
  }
}

/// A placeholder for an input without a link: an empty link that has ended, or that waits for the next one.
@safe
final class LinkPlug: @unchecked Sendable {
  private let counted: UnsafeMutablePointer<LinkCounters>
  private let memory: UnsafeMutablePointer<Link>
  private let nullWake: NullWake

  init(hasEnded: Bool, nullWake: NullWake) {
    self.nullWake = nullWake
    unsafe counted = .allocate(capacity: 1)
    unsafe counted.initialize(to: LinkCounters())
    unsafe memory = .allocate(capacity: 1)
    let wake = unsafe Wake(remote: Unmanaged.passUnretained(nullWake), index: 0)
    unsafe memory.initialize(
      to: Link(limit: 1, policy: .dropNewest, burst: 1, counters: counted, consumer: wake, producer: wake))
    if hasEnded { unsafe memory.pointee.end() } else { unsafe memory.pointee.detach() }
  }

  deinit {
    unsafe memory.deinitialize(count: 1)
    unsafe memory.deallocate()
    unsafe counted.deallocate()
  }

  var address: UnsafeMutablePointer<Link> { unsafe memory }
}
