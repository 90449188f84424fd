public import MillraceCore

/// Keeps the latest sound while nobody can take it: what was said while a service was being connected is sent when it is.
///
/// Bounded in bytes and in time; the oldest goes first, whole packets at a time. Memory is got once, in `init`.
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
  /// Packets that are kept.
  public private(set) var count = 0
  /// Time they stand for.
  public private(set) var duration: Nanoseconds = 0
  /// Time that was let go of since the last `clear`.
  public private(set) var lost: Nanoseconds = 0
  private var writeOffset = 0

  /// - Parameters:
  ///   - bytes: content kept at most.
  ///   - packets: packets kept at most.
  ///   - longest: time kept at most.
  public init(bytes: Int, packets: Int, longest: Nanoseconds) {
    capacity = max(1, bytes)
    unsafe memory = .allocate(capacity: capacity)
    self.longest = longest
    entries = Array(repeating: Entry(offset: 0, count: 0, duration: 0), count: max(1, packets))
  }

  deinit { unsafe memory.deallocate() }

  /// True when nothing is kept.
  public var isEmpty: Bool { count == 0 }

  /// Bytes of the oldest packet; nil when there is none.
  public var firstCount: Int? { count > 0 ? entries[head].count : nil }

  /// Keeps one packet of a duration. One that is longer than all memory is let go of.
  public mutating func push(_ bytes: Span<UInt8>, duration time: Nanoseconds) {
    guard bytes.count <= capacity, time <= longest else {
      lost += time
      return
    }
    while count == entries.count || (count > 0 && duration + time > longest) { letGo() }
    var offset = place(for: bytes.count)
    while offset < 0 {
      letGo()
      offset = place(for: bytes.count)
    }
    for index in bytes.indices { unsafe memory[offset + index] = bytes[index] }
    entries[(head + count) % entries.count] = Entry(offset: offset, count: bytes.count, duration: time)
    count += 1
    duration += time
    writeOffset = offset + bytes.count
  }

  /// Hands the oldest packet to `body` and lets go of it. False when there was none.
  public mutating func pop(_ body: (Span<UInt8>) -> Void) -> Bool {
    guard count > 0 else { return false }
    let entry = entries[head]
    body(unsafe Span(_unsafeStart: UnsafePointer(memory + entry.offset), count: entry.count))
    remove()
    return true
  }

  /// Forgets everything, and what was lost.
  public mutating func clear() {
    count = 0
    duration = 0
    lost = 0
    writeOffset = 0
  }

  /// Where so many bytes fit behind the newest packet without touching the oldest; negative when they do not.
  private func place(for bytes: Int) -> Int {
    guard count > 0 else { return 0 }
    let first = entries[head].offset
    if writeOffset > first {
      if writeOffset + bytes <= capacity { return writeOffset }
      return bytes <= first ? 0 : -1
    }
    // The newest lies before the oldest.
    return writeOffset + bytes <= first ? writeOffset : -1
  }

  private mutating func letGo() {
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
