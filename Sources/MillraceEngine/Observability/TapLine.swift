internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// The state that a tap shares with the worker that feeds it: a link, with a pool that packets are copied into.
///
/// Lives until the tap is gone and the worker has released it.
@safe
final class TapLine: @unchecked Sendable {
  private let counted: UnsafeMutablePointer<LinkCounters>
  private let memory: UnsafeMutablePointer<Link>
  private let pool: BlockPool
  private let limit: Int
  private let isClosed = Atomic<Bool>(false)
  /// Both ends of the link need a wake target; neither side waits here.
  private let nullWake: NullWake
  /// The next tap that the worker waits for. Used by the worker only; the board retains it.
  @exclusivity(unchecked) var following: Unmanaged<TapLine>?

  init(capacity: Int, packetBytes: Int, nullWake: NullWake) {
    limit = capacity
    self.nullWake = nullWake
    unsafe following = nil
    // One more for the packet the reader holds.
    pool = BlockPool(blockBytes: packetBytes, blockCount: capacity + 1)
    unsafe counted = .allocate(capacity: 1)
    unsafe counted.initialize(to: LinkCounters())
    unsafe memory = .allocate(capacity: 1)
    let wake = unsafe Wake(remote: Unmanaged.passUnretained(nullWake), index: 0)
    unsafe memory.initialize(
      to: Link(
        limit: capacity, policy: .dropNewest, burst: 1, counters: counted, consumer: wake, producer: wake,
        copies: pool))
  }

  deinit {
    unsafe memory.deinitialize(count: 1)
    unsafe memory.deallocate()
    unsafe counted.deallocate()
    // An outstanding packet points at its pool.
    if !pool.hasAllBlocks { _ = unsafe Unmanaged.passRetained(pool) }
  }

  var address: UnsafeMutablePointer<Link> { unsafe memory }

  /// The oldest packet. One reader at a time.
  func next() -> Packet? { unsafe memory.pointee.takeAny() }

  /// The node that feeds it has ended. Only the worker.
  func end() { unsafe memory.pointee.end() }

  var droppedCount: Int { unsafe counted.pointee.droppedNewest.current }

  /// Closes the tap. True the first time.
  func close() -> Bool { !isClosed.exchange(true, ordering: .acquiringAndReleasing) }

  var isOver: Bool {
    // The end is read before the packets, so that packets queued before the end are seen.
    unsafe isClosed.load(ordering: .acquiring) ? memory.pointee.isEmpty() : memory.pointee.isOver()
  }

  /// True while the worker of a virtual clock should wait. Only the worker.
  var isHalfFull: Bool {
    unsafe memory.pointee.queuedCount() > limit / 2 && !isClosed.load(ordering: .relaxed)
  }
}
