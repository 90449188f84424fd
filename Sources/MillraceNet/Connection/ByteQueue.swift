internal import Synchronization

/// A lock-free queue of byte records between two threads, in memory that is allocated once.
///
/// One thread calls `hasRoom` and `put`, one other `peek` and `drop`. Nothing blocks, locks or allocates. A record is contiguous, so one of
/// up to half the capacity always fits into an empty queue. A writer without room can request a notification (`hasRoomOrRequestsWake`):
/// `takeRequest` then tells the reader to wake it.
@safe
public final class ByteQueue: @unchecked Sendable {
  /// The oldest record. Its bytes are valid until `drop`.
  @safe
  public struct Record {
    /// The kind given by the writer.
    public let kind: UInt8
    /// Bytes written before it; unique for each record.
    public let position: Int
    /// The content.
    public let bytes: UnsafeBufferPointer<UInt8>
  }

  private static let headBytes = 8
  /// The largest record and the largest queue, in bytes: a count has 32 bits.
  private static let most = 1 << 30
  /// A count that marks the rest of the memory as unused.
  private static let skip: Int32 = -1

  private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  private let written = Atomic<Int>(0)
  private let read = Atomic<Int>(0)
  private let writerWaits = Atomic<Bool>(false)

  /// Creates an empty queue.
  /// - Parameters:
  ///   - largest: the largest record in bytes.
  ///   - bytes: the least capacity in bytes.
  public init(largest: Int, atLeast bytes: Int) {
    guard largest >= 0 && largest <= Self.most && bytes <= Self.most else {
      fatalError("a queue of \(bytes) bytes for records of \(largest) is too large; the limit is 1 GiB")
    }
    capacity = max(bytes, 2 * Self.space(largest)) & ~7
    unsafe memory = .allocate(byteCount: capacity, alignment: 8)
  }

  deinit { unsafe memory.deallocate() }

  private static func space(_ count: Int) -> Int { headBytes + (count + 7) & ~7 }

  // MARK: Writing thread

  /// Bytes a record takes, including those skipped at the end of the memory when it does not fit there.
  private func need(_ count: Int) -> (skipped: Int, all: Int) {
    let offset = written.load(ordering: .relaxed) % capacity
    let space = Self.space(count)
    let skipped = offset + space > capacity ? capacity - offset : 0
    return (skipped, skipped + space)
  }

  /// True when a record of `count` bytes fits.
  public func hasRoom(_ count: Int) -> Bool {
    let used = written.load(ordering: .relaxed) - read.load(ordering: .acquiring)
    return used + need(count).all <= capacity
  }

  /// The same; when false, `takeRequest` returns true after the reader's next `drop`.
  public func hasRoomOrRequestsWake(_ count: Int) -> Bool {
    if hasRoom(count) { return true }
    // Request first, check again after: one of the two sees a drop in between.
    _ = writerWaits.exchange(true, ordering: .sequentiallyConsistent)
    return hasRoom(count)
  }

  /// Appends a record; requires room for it. `fill` writes exactly `count` bytes.
  ///
  /// Without room the record would overwrite unread ones or run past the memory, so the program stops with a message instead.
  public func put(_ kind: UInt8, count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
    guard count >= 0 && count <= Self.most && hasRoom(count) else {
      fatalError("no room in the queue for a record of \(count) bytes; call hasRoom before put")
    }
    let start = written.load(ordering: .relaxed)
    let (skipped, all) = need(count)
    if skipped > 0 { unsafe memory.storeBytes(of: Self.skip, toByteOffset: start % capacity, as: Int32.self) }
    let offset = (start + skipped) % capacity
    unsafe memory.storeBytes(of: Int32(count), toByteOffset: offset, as: Int32.self)
    unsafe memory.storeBytes(of: kind, toByteOffset: offset + 4, as: UInt8.self)
    unsafe fill((memory + offset + Self.headBytes).assumingMemoryBound(to: UInt8.self))
    written.store(start + all, ordering: .releasing)
  }

  // MARK: Reading thread

  /// Bytes written so far. Records with a smaller position are older.
  public var end: Int { written.load(ordering: .acquiring) }

  /// The oldest record, or nil when the queue is empty.
  public func peek() -> Record? {
    while true {
      let start = read.load(ordering: .relaxed)
      guard start != written.load(ordering: .acquiring) else { return nil }
      let offset = start % capacity
      let count = unsafe memory.load(fromByteOffset: offset, as: Int32.self)
      if count == Self.skip {
        read.store(start + capacity - offset, ordering: .releasing)
        continue
      }
      let bytes = unsafe (memory + offset + Self.headBytes).assumingMemoryBound(to: UInt8.self)
      return unsafe Record(
        kind: memory.load(fromByteOffset: offset + 4, as: UInt8.self), position: start,
        bytes: UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
  }

  /// Frees the oldest record's memory. Only after `peek`.
  public func drop(_ record: borrowing Record) {
    read.store(record.position + Self.space(unsafe record.bytes.count), ordering: .releasing)
  }

  /// True when the writer has found no room since the last call, and waits to be notified of a drop.
  public func takeRequest() -> Bool { writerWaits.exchange(false, ordering: .sequentiallyConsistent) }
}
