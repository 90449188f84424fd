internal import Synchronization

/// Records of bytes between a node and the thread of the sockets, or any two threads, in memory reserved once.
///
/// One thread uses `hasRoom` and `put`, one other `peek` and `drop`. Nothing waits, locks or asks the heap. A record lies in one
/// piece, so that a record of up to half the memory always finds room in an empty queue. A writer that finds none may ask for it
/// (`hasRoomOrAsks`); the reader then tells it, in whatever way the two have, when `takeRequest` says so.
@safe
public final class ByteQueue: @unchecked Sendable {
  /// The oldest record. Its bytes are good until `drop`.
  @safe
  public struct Record {
    /// What it is, as whoever put it in said.
    public let kind: UInt8
    /// Bytes that were put in before it, by which records are told apart.
    public let position: Int
    /// Its content.
    public let bytes: UnsafeBufferPointer<UInt8>
  }

  private static let headBytes = 8
  /// Bytes of a record, and of all the memory that is asked for: a count has 32 bits.
  private static let most = 1 << 30
  /// A head with this count: the rest of the memory is unused.
  private static let skip: Int32 = -1

  private let memory: UnsafeMutableRawPointer
  private let capacity: Int
  private let written = Atomic<Int>(0)
  private let read = Atomic<Int>(0)
  private let writerWaits = Atomic<Bool>(false)

  /// Makes an empty queue.
  /// - Parameters:
  ///   - largest: bytes of the largest record.
  ///   - bytes: memory to reserve at least.
  public init(largest: Int, atLeast bytes: Int) {
    guard largest >= 0 && largest <= Self.most && bytes <= Self.most else {
      fatalError("a queue of \(bytes) bytes for records of \(largest) cannot be; 1 GiB is the most")
    }
    capacity = max(bytes, 2 * Self.space(largest)) & ~7
    unsafe memory = .allocate(byteCount: capacity, alignment: 8)
  }

  deinit { unsafe memory.deallocate() }

  private static func space(_ count: Int) -> Int { headBytes + (count + 7) & ~7 }

  // MARK: Writing thread

  /// Bytes that are taken: those before the record's own place, when it does not fit behind the others.
  private func need(_ count: Int) -> (skipped: Int, all: Int) {
    let offset = written.load(ordering: .relaxed) % capacity
    let space = Self.space(count)
    let skipped = offset + space > capacity ? capacity - offset : 0
    return (skipped, skipped + space)
  }

  /// True when a record of so many bytes fits.
  public func hasRoom(_ count: Int) -> Bool {
    let used = written.load(ordering: .relaxed) - read.load(ordering: .acquiring)
    return used + need(count).all <= capacity
  }

  /// As `hasRoom`, and when it is false `takeRequest` is true after the reader's next `drop`.
  public func hasRoomOrAsks(_ count: Int) -> Bool {
    if hasRoom(count) { return true }
    // Ask first, look again after: a drop in between is seen by one of the two.
    _ = writerWaits.exchange(true, ordering: .sequentiallyConsistent)
    return hasRoom(count)
  }

  /// Appends a record; only when there is room, which `hasRoom` says. `fill` writes its bytes, so many and no more.
  ///
  /// A record without room would be written over others that are not read yet, or beyond the memory: the program ends with words instead.
  public func put(_ kind: UInt8, count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
    guard count >= 0 && count <= Self.most && hasRoom(count) else {
      fatalError("a queue has no room for a record of \(count) bytes; ask hasRoom before put")
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

  /// Bytes put in so far: what lies before is older.
  public var end: Int { written.load(ordering: .acquiring) }

  /// The oldest record; nil when there is none.
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

  /// Gives the oldest record's memory back. Only after `peek`.
  public func drop(_ record: borrowing Record) {
    read.store(record.position + Self.space(unsafe record.bytes.count), ordering: .releasing)
  }

  /// True when the writer has found no room since the last call: it is to be told that something was dropped.
  public func takeRequest() -> Bool { writerWaits.exchange(false, ordering: .sequentiallyConsistent) }
}
