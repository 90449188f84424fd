/// The statistics of one link since its graph started. Every counter has one writer; any thread may read.
///
/// It has a fixed address beside its link and outlives the link for the report.
@usableFromInline package struct LinkCounters: ~Copyable, Sendable {
  /// Packets that entered the ring.
  @usableFromInline package let pushed = Counter()
  /// Packets that left the ring and reached the reader, or were stale.
  @usableFromInline package let popped = Counter()
  /// New packets discarded because the link was full, had no free block, or its reader had ended.
  @usableFromInline package let droppedNewest = Counter()
  /// Old packets discarded to keep the link within its limit.
  @usableFromInline package let droppedOldest = Counter()
  /// Packets of an interrupted reply that were discarded.
  @usableFromInline package let droppedStale = Counter()
  /// Packets discarded to shed load.
  @usableFromInline package let droppedShed = Counter()
  /// Packets discarded because the reading node stopped or was isolated.
  @usableFromInline package let discarded = Counter()
  /// Most packets ever queued at once, as seen by the reader.
  @usableFromInline package let highWater = Counter()

  /// All at 0.
  package init() {}

  /// Packets in the link now. Approximate: the counters change while they are read.
  package var queued: Int {
    max(0, pushed.current - popped.current - droppedOldest.current - discarded.current)
  }
}
