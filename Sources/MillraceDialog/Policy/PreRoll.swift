public import MillraceCore

/// Keeps the latest audio while it cannot be sent: what was said during connecting is sent once the service is connected.
///
/// Bounded in bytes and in time; the oldest packets are discarded first. Allocates once, in `init`.
@safe
public struct PreRoll: ~Copyable {
  private struct Entry {
    var offset: Int
    var count: Int
    var duration: Nanoseconds
  }

  private let memory: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private let longest: Nanoseconds
  private var entries: [Entry]
  private var head = 0
  /// Packets kept.
  public private(set) var count = 0
  /// Duration of the packets kept.
  public private(set) var duration: Nanoseconds = 0
  /// Duration discarded since the last `clear`.
  public private(set) var lost: Nanoseconds = 0
  private var writeOffset = 0

  /// - Parameters:
  ///   - bytes: capacity in bytes.
  ///   - packets: capacity in packets.
  ///   - longest: capacity in time.
  public init(bytes: Int, packets: Int, longest: Nanoseconds) {
    capacity = max(1, bytes)
    unsafe memory = .allocate(capacity: capacity)
    self.longest = longest
    entries = Array(repeating: Entry(offset: 0, count: 0, duration: 0), count: max(1, packets))
  }

  deinit { unsafe memory.deallocate() }

  /// True when no packet is kept.
  public var isEmpty: Bool { count == 0 }

  /// Bytes of the oldest packet, or nil when there is none.
  public var firstCount: Int? { count > 0 ? entries[head].count : nil }

  /// Appends a packet. One that exceeds the whole capacity is discarded.
  public mutating func push(_ bytes: Span<UInt8>, duration time: Nanoseconds) {
    guard bytes.count <= capacity, time <= longest else {
      lost += time
      return
    }
    while count == entries.count || (count > 0 && duration + time > longest) { discardOldest() }
    var offset = self.offset(for: bytes.count)
    while offset < 0 {
      discardOldest()
      offset = self.offset(for: bytes.count)
    }
    for index in bytes.indices { unsafe memory[offset + index] = bytes[index] }
    entries[(head + count) % entries.count] = Entry(offset: offset, count: bytes.count, duration: time)
    count += 1
    duration += time
    writeOffset = offset + bytes.count
  }

  /// Passes the oldest packet to `body` and removes it. Returns false when there is none.
  public mutating func pop(_ body: (Span<UInt8>) -> Void) -> Bool {
    guard count > 0 else { return false }
    let entry = entries[head]
    body(unsafe Span(_unsafeStart: UnsafePointer(memory + entry.offset), count: entry.count))
    remove()
    return true
  }

  /// Removes everything, and resets `lost`.
  public mutating func clear() {
    count = 0
    duration = 0
    lost = 0
    writeOffset = 0
  }

  /// Where `bytes` fit behind the newest packet without overwriting the oldest; negative when they do not.
  private func offset(for bytes: Int) -> Int {
    guard count > 0 else { return 0 }
    let first = entries[head].offset
    if writeOffset > first {
      if writeOffset + bytes <= capacity { return writeOffset }
      return bytes <= first ? 0 : -1
    }
    // The newest lies before the oldest.
    return writeOffset + bytes <= first ? writeOffset : -1
  }

  private mutating func discardOldest() {
    lost += entries[head].duration
    remove()
  }

  private mutating func remove() {
    duration -= entries[head].duration
    head = (head + 1) % entries.count
    count -= 1
    if count == 0 { writeOffset = 0 }
  }
}
