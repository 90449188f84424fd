internal import MillraceCore
internal import Synchronization

/// The last calls of one worker: when, which cell, how long. Always on; the oldest records are overwritten.
///
/// Writing is two plain stores. A reader takes a copy and throws away what may have been overwritten meanwhile: a sequence lock, with the
/// number of records as the sequence (H.-J. Boehm, "Can seqlocks get along with programming language memory models?", 2012). The fences
/// are what ARM needs; on x86 they cost no instruction.
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

  /// Records kept: at 1,000 calls a second and worker, 32 seconds.
  static let capacity = 1 << 15
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  /// Times on a virtual clock, one a record; nil on the real clock, where `startTicks` says it.
  private let times: UnsafeMutablePointer<Atomic<Int64>>?
  private let written = Atomic<Int>(0)
  /// Up to where a reader that must not miss anything has read; the largest number when there is none.
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

  /// Notes one call. Only the worker.
  @inline(__always)
  func record(cell: UInt32, start: UInt64, ticks: UInt64, time: Nanoseconds) {
    // Who sees a word of this record sees the number of those before it as well.
    atomicMemoryFence(ordering: .releasing)
    if let times = unsafe times { unsafe times[next & (Self.capacity - 1)].store(time, ordering: .relaxed) }
    let slot = (next & (Self.capacity - 1)) &<< 1
    unsafe words[slot].store(start, ordering: .relaxed)
    let duration = UInt64(UInt32(truncatingIfNeeded: min(ticks, UInt64(UInt32.max))))
    unsafe words[slot &+ 1].store(UInt64(cell) &<< 32 | duration, ordering: .relaxed)
    next &+= 1
    written.store(next, ordering: .releasing)
  }

  /// Copies the records from number `first` on; answers them, the number after the last, and how many were lost before.
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
    // What the worker wrote meanwhile may have gone over the oldest of these, one more being written now. The words are read
    // before the number is.
    atomicMemoryFence(ordering: .acquiring)
    let overwritten = max(0, written.load(ordering: .relaxed) + 1 - Self.capacity - start)
    if overwritten > 0 { records.removeFirst(min(overwritten, records.count)) }
    return (records, end, start - first + overwritten)
  }

  // MARK: A reader that must not miss anything

  /// From now on `isFull` says when the next records would overwrite what the reader has not seen. nil: it has gone.
  func awaitReader(upTo number: Int?) { awaitedUpTo.store(number ?? Int.max, ordering: .releasing) }

  /// True when half of the ring waits for such a reader. Only the worker.
  var isFull: Bool { next &- awaitedUpTo.load(ordering: .acquiring) > Self.capacity / 2 }
}
