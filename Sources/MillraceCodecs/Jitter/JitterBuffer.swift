package import MillraceCore

/// Sorts packets by position, whatever order they arrived in.
///
/// Bounded; not thread-safe; no heap after `init`.
@safe
package struct JitterBuffer: ~Copyable {
  /// The outcome of inserting a packet.
  package enum Verdict: Equatable {
    case taken
    /// It arrived after a packet that follows it.
    case reordered
    case duplicate
    /// It arrived after its time.
    case late
    /// The buffer was full: the oldest packet was dropped.
    case overflow
  }

  /// Most packets in the buffer: 1.28 s of 20 ms each.
  package static let capacity = 64

  private let packets: UnsafeMutablePointer<Packet?>
  /// Their positions, ascending.
  private let positions: UnsafeMutablePointer<Int64>
  package private(set) var count = 0
  /// Positions taken most recently, to tell a duplicate from a late packet.
  private let recent: UnsafeMutablePointer<Int64>
  private var recentCount = 0

  package init() {
    unsafe packets = .allocate(capacity: Self.capacity)
    for index in 0..<Self.capacity { unsafe (packets + index).initialize(to: nil) }
    unsafe positions = .allocate(capacity: Self.capacity)
    unsafe positions.initialize(repeating: 0, count: Self.capacity)
    unsafe recent = .allocate(capacity: Self.capacity)
    unsafe recent.initialize(repeating: .min, count: Self.capacity)
  }

  deinit {
    unsafe packets.deinitialize(count: Self.capacity)
    unsafe packets.deallocate()
    unsafe positions.deallocate()
    unsafe recent.deallocate()
  }

  /// Position of the first packet; nil if the buffer is empty.
  package var nextPosition: Int64? { count > 0 ? unsafe positions[0] : nil }

  /// Borrows the first packet for inspection; return it before calling anything else.
  package mutating func borrowNext() -> Packet? { count > 0 ? unsafe packets[0].take() : nil }

  package mutating func returnNext(_ packet: consuming Packet) { unsafe packets[0] = consume packet }

  /// Inserts a packet at its position, unless it lies before `passed`, the position reached by decoding.
  package mutating func insert(_ packet: consuming Packet, passed: Int64?) -> Verdict {
    let position = packet.position
    if let passed, position < passed {
      for index in 0..<Self.capacity where unsafe recent[index] == position { return .duplicate }
      return .late
    }
    var place = count
    while place > 0 {
      let other = unsafe positions[place - 1]
      if other == position { return .duplicate }
      if other < position { break }
      place -= 1
    }
    let isLast = place == count
    let isFull = count == Self.capacity
    if isFull {
      // Older than all others, it is the one to drop.
      guard place > 0 else { return .overflow }
      _ = take()
      place -= 1
    }
    var index = count
    while index > place {
      unsafe packets[index] = unsafe packets[index - 1].take()
      unsafe positions[index] = unsafe positions[index - 1]
      index -= 1
    }
    unsafe packets[place] = consume packet
    unsafe positions[place] = position
    count += 1
    return isFull ? .overflow : isLast ? .taken : .reordered
  }

  /// Takes the first packet.
  package mutating func take() -> Packet? {
    guard count > 0, let packet = unsafe packets[0].take() else { return nil }
    for index in 1..<max(count, 1) {
      unsafe packets[index - 1] = unsafe packets[index].take()
      unsafe positions[index - 1] = unsafe positions[index]
    }
    count -= 1
    unsafe recent[recentCount % Self.capacity] = packet.position
    recentCount += 1
    return packet
  }

  /// Drops everything, including the memory of packets taken.
  package mutating func clear() {
    while count > 0 { _ = take() }
    for index in 0..<Self.capacity { unsafe recent[index] = .min }
  }
}
