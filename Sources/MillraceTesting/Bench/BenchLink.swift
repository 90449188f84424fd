internal import MillraceCore

/// A link at a fixed address, with its counters and the one-element list that an output slot needs.
@safe
final class BenchLink {
  let link: UnsafeMutablePointer<Link>
  let list: UnsafeMutablePointer<UnsafeMutablePointer<Link>>
  private let counters: UnsafeMutablePointer<LinkCounters>

  /// - Parameters:
  ///   - consumer: how to wake the reader.
  ///   - producer: how to wake the writer.
  init(shape: OutputShape, limit: Int, policy: LinkPolicy, consumer: Wake, producer: Wake) {
    unsafe counters = .allocate(capacity: 1)
    unsafe counters.initialize(to: LinkCounters())
    unsafe link = .allocate(capacity: 1)
    unsafe link.initialize(
      to: Link(
        limit: limit, policy: policy, burst: max(1, shape.burst), counters: counters, consumer: consumer,
        producer: producer))
    unsafe list = .allocate(capacity: 1)
    unsafe list.initialize(to: link)
  }

  func end() { unsafe link.pointee.end() }

  /// The statistics of the link so far.
  var counts: LinkCounts {
    unsafe LinkCounts(
      pushed: counters.pointee.pushed.current, popped: counters.pointee.popped.current,
      droppedNewest: counters.pointee.droppedNewest.current,
      droppedOldest: counters.pointee.droppedOldest.current,
      droppedStale: counters.pointee.droppedStale.current)
  }

  deinit {
    unsafe link.deinitialize(count: 1)
    unsafe link.deallocate()
    unsafe list.deallocate()
    unsafe counters.deinitialize(count: 1)
    unsafe counters.deallocate()
  }
}

/// The statistics of one link.
public struct LinkCounts: Sendable, Hashable {
  /// Packets that entered.
  public var pushed = 0
  /// Packets that left.
  public var popped = 0
  /// New packets discarded because the link was full.
  public var droppedNewest = 0
  /// Old packets discarded to keep the link within its limit.
  public var droppedOldest = 0
  /// Packets of an interrupted reply that were discarded.
  public var droppedStale = 0
}
