internal import MillraceCore

/// Packets in the order of their media, whatever the order they came in.
///
/// Bounded; one thread at a time; no heap after `init`.
@safe
struct JitterBuffer: ~Copyable {
  /// What became of a packet.
  enum Verdict: Equatable {
    case taken
    /// Came after a packet that belongs behind it.
    case reordered
    case duplicate
    /// Its time has passed.
    case late
    /// Taken, and the oldest left out for it.
    case crowded
  }

  /// Packets it holds: a second and a quarter of 20 ms each.
  static let capacity = 64

  private let packets: UnsafeMutablePointer<Packet?>
  /// Their positions, rising.
  private let positions: UnsafeMutablePointer<Int64>
  private(set) var count = 0
  /// Positions handed out last, to tell a duplicate from a late packet.
  private let recent: UnsafeMutablePointer<Int64>
  private var recentCount = 0

  init() {
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

  /// Position of the packet that comes next in the media; nil: none is there.
  var nextPosition: Int64? { count > 0 ? unsafe positions[0] : nil }

  /// Lends the packet that comes next, to look into; it has to be given back before anything else.
  mutating func lendNext() -> Packet? { count > 0 ? unsafe packets[0].take() : nil }

  mutating func giveBack(_ packet: consuming Packet) { unsafe packets[0] = consume packet }

  /// Takes a packet in its place, unless `passed`, where playing has got to, lies behind it.
  mutating func insert(_ packet: consuming Packet, passed: Int64?) -> Verdict {
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
    let isCrowded = count == Self.capacity
    if isCrowded {
      // Older than all that are there, it is the one to be left out.
      guard place > 0 else { return .crowded }
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
    return isCrowded ? .crowded : isLast ? .taken : .reordered
  }

  /// Takes the packet that comes next out.
  mutating func take() -> Packet? {
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

  /// Drops everything, and forgets what it handed out.
  mutating func clear() {
    while count > 0 { _ = take() }
    for index in 0..<Self.capacity { unsafe recent[index] = .min }
  }
}
