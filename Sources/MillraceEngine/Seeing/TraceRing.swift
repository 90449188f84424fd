internal import MillraceCore
internal import Synchronization

/// The last calls of one worker: when, which cell, how long. Always on; the oldest records are overwritten.
///
/// Writing is two plain stores. A reader takes a copy and throws away what may have been overwritten meanwhile.
@safe
final class TraceRing: @unchecked Sendable {
  /// One call of a node.
  struct Record {
    var startTicks: UInt64
    var cell: UInt32
    var ticks: UInt32
  }

  /// Records kept: at 1,000 calls a second and worker, 32 seconds.
  static let capacity = 1 << 15
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  private let written = Atomic<Int>(0)
  private var next = 0

  init() {
    unsafe words = .allocate(capacity: Self.capacity * 2)
    for index in 0..<Self.capacity * 2 { unsafe (words + index).initialize(to: Atomic(0)) }
  }

  deinit { unsafe words.deallocate() }

  /// Notes one call. Only the worker.
  @inline(__always)
  func note(cell: UInt32, start: UInt64, ticks: UInt64) {
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
        Record(startTicks: ticks, cell: UInt32(rest >> 32), ticks: UInt32(truncatingIfNeeded: rest)))
    }
    // What the worker wrote meanwhile may have gone over the oldest of these, one more being written now.
    let overwritten = max(0, written.load(ordering: .acquiring) + 1 - Self.capacity - start)
    if overwritten > 0 { records.removeFirst(min(overwritten, records.count)) }
    return (records, end, start - first + overwritten)
  }
}
