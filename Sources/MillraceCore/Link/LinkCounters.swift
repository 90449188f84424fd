/// What happened on one link since its graph started. Every counter has one writer; any thread may read.
///
/// Lives at a fixed address beside its link, and outlives it for the report.
@usableFromInline package struct LinkCounters: ~Copyable, Sendable {
  /// Packets that entered the ring.
  @usableFromInline package let pushed = Counter()
  /// Packets that left it and were handed on (or were stale).
  @usableFromInline package let popped = Counter()
  /// Packets refused because the link was full.
  @usableFromInline package let droppedNewest = Counter()
  /// Packets removed to keep the link within its limit.
  @usableFromInline package let droppedOldest = Counter()
  /// Packets of an interrupted reply.
  @usableFromInline package let droppedStale = Counter()
  /// Packets thrown away to shed load.
  @usableFromInline package let droppedShed = Counter()
  /// Packets thrown away when the reading node stopped or was isolated.
  @usableFromInline package let discarded = Counter()
  /// Most packets ever queued at once, as seen by the reader.
  @usableFromInline package let highWater = Counter()

  /// All at 0.
  package init() {}

  /// Packets in the link now. Read while others write, so this may be some more or less than there ever were.
  package var queued: Int {
    max(0, pushed.current - popped.current - droppedOldest.current - discarded.current)
  }
}
