/// Records waiting for room in a `ByteQueue`: what arrives from a network faster than it is read. Unbounded: the writer must stop reading
/// from the network when too much waits.
public struct ByteBacklog: Sendable {
  private var records: [(kind: UInt8, bytes: [UInt8])] = []
  /// Index of the first record that has not been moved.
  private var first = 0
  /// Bytes waiting.
  public private(set) var bytes = 0

  /// Creates an empty backlog.
  public init() {}

  /// Records waiting.
  public var count: Int { records.count - first }

  /// True when no record waits.
  public var isEmpty: Bool { count == 0 }

  /// Appends a record.
  public mutating func append(_ kind: UInt8, _ bytes: [UInt8]) {
    records.append((kind, bytes))
    self.bytes += bytes.count
  }

  /// Removes all records.
  public mutating func clear() { self = ByteBacklog() }

  /// Moves the oldest records into the queue while there is room, and requests room for the rest. On the queue's writing thread.
  /// - Returns: true when a record was moved.
  public mutating func move(to queue: ByteQueue) -> Bool {
    let before = first
    while first < records.count, queue.hasRoomOrRequestsWake(records[first].bytes.count) {
      let (kind, content) = records[first]
      unsafe queue.put(kind, count: content.count) { target in
        for index in content.indices { unsafe target[index] = content[index] }
      }
      bytes -= content.count
      first += 1
    }
    let hasMoved = first > before
    // Compaction costs as much as was moved, however much waits.
    if first > records.count / 2 {
      records.removeFirst(first)
      first = 0
    }
    return hasMoved
  }
}
