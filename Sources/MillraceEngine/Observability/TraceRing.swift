internal import MillraceCore
internal import Synchronization

/// The last calls of one worker: start, cell and duration. Always on; the oldest records are overwritten.
///
/// Writing is two plain stores. A reader takes a copy and discards what may have been overwritten meanwhile: a sequence lock, with the
/// number of records as the sequence (H.-J. Boehm, "Can seqlocks get along with programming language memory models?", 2012). The
/// fences are for ARM; on x86 they cost no instruction.
@safe
final class TraceRing: @unchecked Sendable {
  /// One call of a node.
  struct Record {
    var startTicks: UInt64
    var cell: UInt32
    var ticks: UInt32
    /// On a virtual clock, the time on it; 0 on the real one.
    var time: Nanoseconds
  }

  /// Capacity in records: 32 seconds at 1,000 calls per second.
  static let capacity = 1 << 15
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  /// Times on a virtual clock, one per record; nil on the real clock, where `startTicks` suffices.
  private let times: UnsafeMutablePointer<Atomic<Int64>>?
  private let written = Atomic<Int>(0)
  /// How far a clock-holding reader has read; `Int.max` when there is none.
  private let awaitedUpTo = Atomic<Int>(Int.max)
  private var next = 0

  /// - Parameter isVirtual: whether the worker's clock is a virtual one.
  init(isVirtual: Bool) {
    unsafe times = isVirtual ? .allocate(capacity: Self.capacity) : nil
    if let times = unsafe times {
      for index in 0..<Self.capacity { unsafe (times + index).initialize(to: Atomic(0)) }
    }
    unsafe words = .allocate(capacity: Self.capacity * 2)
    for index in 0..<Self.capacity * 2 { unsafe (words + index).initialize(to: Atomic(0)) }
  }

  deinit {
    unsafe words.deallocate()
    unsafe times?.deallocate()
  }

  /// Records one call. Only the worker.
  @inline(__always)
  func record(cell: UInt32, start: UInt64, ticks: UInt64, time: Nanoseconds) {
    // A reader that sees a word of this record also sees the count of those before it.
    atomicMemoryFence(ordering: .releasing)
    if let times = unsafe times { unsafe times[next & (Self.capacity - 1)].store(time, ordering: .relaxed) }
    let slot = (next & (Self.capacity - 1)) &<< 1
    unsafe words[slot].store(start, ordering: .relaxed)
    let duration = UInt64(UInt32(truncatingIfNeeded: min(ticks, UInt64(UInt32.max))))
    unsafe words[slot &+ 1].store(UInt64(cell) &<< 32 | duration, ordering: .relaxed)
    next &+= 1
    written.store(next, ordering: .releasing)
  }

  /// Copies the records from number `first` on; also returns the number after the last, and how many were lost before.
  func records(from first: Int) -> (records: [Record], next: Int, lost: Int) {
    let end = written.load(ordering: .acquiring)
    let start = max(first, end - Self.capacity)
    var records: [Record] = []
    records.reserveCapacity(end - start)
    for number in start..<max(start, end) {
      let slot = (number & (Self.capacity - 1)) << 1
      let ticks = unsafe words[slot].load(ordering: .relaxed)
      let rest = unsafe words[slot + 1].load(ordering: .relaxed)
      records.append(
        Record(
          startTicks: ticks, cell: UInt32(rest >> 32), ticks: UInt32(truncatingIfNeeded: rest),
          time: unsafe times?[slot / 2].load(ordering: .relaxed) ?? 0))
    }
    // The worker may have overwritten the oldest of these meanwhile, and may be writing one more now. The words are read before the count.
    atomicMemoryFence(ordering: .acquiring)
    let overwritten = max(0, written.load(ordering: .relaxed) + 1 - Self.capacity - start)
    if overwritten > 0 { records.removeFirst(min(overwritten, records.count)) }
    return (records, end, start - first + overwritten)
  }

  // MARK: A reader that holds the clock

  /// Sets how far the reader has read: `isFull` tells when further records could overwrite unread ones. nil: the reader is gone.
  func awaitReader(upTo number: Int?) { awaitedUpTo.store(number ?? Int.max, ordering: .releasing) }

  /// True when half of the ring is unread by such a reader. Only the worker.
  var isFull: Bool { next &- awaitedUpTo.load(ordering: .acquiring) > Self.capacity / 2 }
}
