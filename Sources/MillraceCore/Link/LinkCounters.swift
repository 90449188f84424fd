/// What happened on one link since its graph started. Every counter has one writer; any thread may read.
///
/// Lives at a fixed address beside its link, and outlives it for the report.
public struct LinkCounters: ~Copyable, Sendable {
  /// Packets that entered the ring.
  public let pushed = Counter()
  /// Packets that left it and were handed on (or were stale).
  public let popped = Counter()
  /// Packets refused because the link was full.
  public let droppedNewest = Counter()
  /// Packets removed to keep the link within its limit.
  public let droppedOldest = Counter()
  /// Packets of an interrupted reply.
  public let droppedStale = Counter()
  /// Packets thrown away to shed load.
  public let droppedShed = Counter()
  /// Packets thrown away when the reading node stopped or was isolated.
  public let discarded = Counter()
  /// Most packets ever queued at once, as seen by the reader.
  public let highWater = Counter()

  /// All at 0.
  public init() {}

  /// Packets in the link now. Read while others write, so this may be some more or less than there ever were.
  public var queued: Int {
    max(0, pushed.current - popped.current - droppedOldest.current - discarded.current)
  }
}
