/// Records that wait for room in a queue: what comes from a network faster than its reader takes it. Not bounded; whoever fills it stops
/// reading when there is too much.
public struct ByteBacklog: Sendable {
  private var records: [(kind: UInt8, bytes: [UInt8])] = []
  /// Records before this one have been moved on.
  private var first = 0
  /// Bytes that wait.
  public private(set) var bytes = 0

  /// Makes an empty one.
  public init() {}

  /// Records that wait.
  public var count: Int { records.count - first }

  /// True when none waits.
  public var isEmpty: Bool { count == 0 }

  /// Puts a record behind the others.
  public mutating func append(_ kind: UInt8, _ bytes: [UInt8]) {
    records.append((kind, bytes))
    self.bytes += bytes.count
  }

  /// Lets go of all of them.
  public mutating func clear() { self = ByteBacklog() }

  /// Moves what the queue has room for, the oldest first, and asks it for room for the rest. On the queue's writing thread.
  /// - Returns: true when something was moved.
  public mutating func move(to queue: ByteQueue) -> Bool {
    let before = first
    while first < records.count, queue.hasRoomOrAsks(records[first].bytes.count) {
      let (kind, content) = records[first]
      unsafe queue.put(kind, count: content.count) { target in
        for index in content.indices { unsafe target[index] = content[index] }
      }
      bytes -= content.count
      first += 1
    }
    let hasMoved = first > before
    // Closing up costs as much as was moved, however much waits.
    if first > records.count / 2 {
      records.removeFirst(first)
      first = 0
    }
    return hasMoved
  }
}
