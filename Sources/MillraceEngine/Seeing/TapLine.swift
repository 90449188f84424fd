internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// What a tap and the worker that feeds it share: a link of its own, with a pool that packets are copied into.
///
/// Lives until the tap is gone and the worker has let go of it.
@safe
final class TapLine: @unchecked Sendable {
  private let counted: UnsafeMutablePointer<LinkCounters>
  private let memory: UnsafeMutablePointer<Link>
  private let pool: BlockPool
  private let limit: Int
  private let isClosed = Atomic<Bool>(false)
  /// Whoever a link wakes needs no waking here, but must exist.
  private let nobody: DeafWake
  /// The next of the taps a worker waits for. Only the worker; the board keeps it alive.
  @exclusivity(unchecked) var following: Unmanaged<TapLine>?

  init(capacity: Int, packetBytes: Int, nobody: DeafWake) {
    limit = capacity
    self.nobody = nobody
    unsafe following = nil
    // One more is in the reader's hand.
    pool = BlockPool(blockBytes: packetBytes, blockCount: capacity + 1)
    unsafe counted = .allocate(capacity: 1)
    unsafe counted.initialize(to: LinkCounters())
    unsafe memory = .allocate(capacity: 1)
    let wake = unsafe Wake(remote: Unmanaged.passUnretained(nobody), index: 0)
    unsafe memory.initialize(
      to: Link(
        limit: capacity, policy: .dropNewest, burst: 1, counters: counted, consumer: wake, producer: wake,
        copies: pool))
  }

  deinit {
    unsafe memory.deinitialize(count: 1)
    unsafe memory.deallocate()
    unsafe counted.deallocate()
    // A packet that is still out there points at its pool.
    if !pool.isWhole { _ = unsafe Unmanaged.passRetained(pool) }
  }

  var address: UnsafeMutablePointer<Link> { unsafe memory }

  /// The oldest packet. One reader at a time.
  func next() -> Packet? { unsafe memory.pointee.takeAny() }

  /// The node that feeds it has ended. Only the worker.
  func end() { unsafe memory.pointee.end() }

  var droppedCount: Int { unsafe counted.pointee.droppedNewest.current }

  /// Nothing more will come. True the first time.
  func close() -> Bool { !isClosed.exchange(true, ordering: .acquiringAndReleasing) }

  var isOver: Bool {
    // The end first, the packets second: what was put in before the end is seen.
    unsafe isClosed.load(ordering: .acquiring) ? memory.pointee.isEmpty() : memory.pointee.isOver()
  }

  /// True while the worker of a virtual clock had better wait. Only the worker.
  var isHalfFull: Bool {
    unsafe memory.pointee.queuedCount() > limit / 2 && !isClosed.load(ordering: .relaxed)
  }
}

/// Where one output's packets go: its links, then its taps. Laid out on the control side, read by the worker.
@safe
final class FanOut: @unchecked Sendable {
  let links: UnsafeMutablePointer<UnsafeMutablePointer<Link>>
  let count: Int
  let taps: [TapLine]
  /// The worker uses it, and none that came before it.
  var isInPlace = false

  init(_ own: [UnsafeMutablePointer<Link>], taps: [TapLine]) {
    self.taps = taps
    let ownCount = unsafe own.count
    count = ownCount + taps.count
    unsafe links = .allocate(capacity: count)
    for index in 0..<ownCount { unsafe (links + index).initialize(to: own[index]) }
    for (index, tap) in taps.enumerated() { unsafe (links + ownCount + index).initialize(to: tap.address) }
  }

  deinit { unsafe links.deallocate() }
}

/// The taps of a run. Under its lock; a worker takes that only when taps change.
struct TapBoard {
  /// What each tapped output is to send to.
  private(set) var fans: [GraphPlan.End: FanOut] = [:]
  /// Laid out earlier and perhaps still used by the worker.
  private var former: [GraphPlan.End: [FanOut]] = [:]
  private var isClosed = false

  /// Lays an output out anew. False when the run is over: a new tap then ends at once.
  mutating func change(
    _ output: GraphPlan.End, _ edit: (inout [TapLine]) -> Void,
    own: (GraphPlan.End) -> [UnsafeMutablePointer<Link>]
  ) -> Bool {
    var taps = fans[output]?.taps ?? []
    edit(&taps)
    guard !isClosed else {
      for tap in taps { _ = tap.close() }
      return false
    }
    if let fan = fans[output] { former[output, default: []].append(fan) }
    fans[output] = unsafe FanOut(own(output), taps: taps)
    return true
  }

  /// The worker has taken an output's new layout over: the former ones can go.
  mutating func takeOver(_ output: GraphPlan.End) {
    fans[output]?.isInPlace = true
    former[output] = nil
  }

  mutating func close(releasing: Bool) {
    isClosed = true
    for tap in fans.values.flatMap(\.taps) { _ = tap.close() }
    guard releasing else { return }
    fans = [:]
    former = [:]
  }
}
