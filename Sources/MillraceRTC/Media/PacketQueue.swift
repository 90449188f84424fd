internal import MillraceCore

/// Packets that wait for their turn to be sent, first in, first out, in one piece of memory that is requested at `init` and touched as far
/// as packets have waited at the same time.
@safe
struct PacketQueue: ~Copyable {
  /// In front of each packet.
  private static let lengthBytes = 2

  private let memory: UnsafeMutableRawBufferPointer
  private let capacity: Int
  private var head = 0
  private var tail = 0

  /// - Parameter capacity: bytes of all packets that wait, with two each for their length.
  init(capacity: Int) {
    self.capacity = max(capacity, 4_096)
    unsafe memory = .allocate(byteCount: self.capacity, alignment: 8)
  }

  deinit { unsafe memory.deallocate() }

  var isEmpty: Bool { head == tail }

  /// Bytes that wait. Also a mark for `truncate`.
  var bytes: Int { tail - head }

  /// Appends a packet. False: there is no room for it.
  mutating func append(_ packet: Span<UInt8>) -> Bool {
    guard let length = UInt16(exactly: packet.count) else { return false }
    let needed = packet.count + Self.lengthBytes
    if capacity - tail < needed { compact() }
    guard capacity - tail >= needed else { return false }
    unsafe memory.storeBytes(of: length, toByteOffset: tail, as: UInt16.self)
    let start = tail + Self.lengthBytes
    let target = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[start..<tail + needed])
    unsafe packet.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    tail += needed
    return true
  }

  /// Removes the packets that were appended since `bytes` had this value; nothing may have been taken since.
  mutating func truncate(to bytes: Int) { tail = min(tail, head + max(0, bytes)) }

  /// Takes the oldest packet, and gives its length; nil: none waits. One that does not fit is dropped with length 0.
  mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int? {
    guard !isEmpty else { return nil }
    let length = Int(unsafe memory.loadUnaligned(fromByteOffset: head, as: UInt16.self))
    let start = head + Self.lengthBytes
    head = start + length
    defer { if head == tail { (head, tail) = (0, 0) } }
    guard length <= target.count else { return 0 }
    unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[start..<start + length]))
    return length
  }

  private mutating func compact() {
    guard head > 0 else { return }
    let waiting = unsafe UnsafeRawBufferPointer(rebasing: memory[head..<tail])
    unsafe memory.copyMemory(from: waiting)
    (head, tail) = (0, tail - head)
  }
}

/// When the next packet may leave: a leaky bucket (libwebrtc, `PacingController`). Times in nanoseconds.
struct Pacer {
  /// What may leave at once after a pause, as the time it takes at the pace: the clock of a loop is no finer.
  private static let burst: Nanoseconds = .milliseconds(5)
  /// Whatever the pace, what waits leaves within this time, so that an encoder that ignores its rate does not make pictures old
  /// (libwebrtc, `kMaxExpectedQueueLength`).
  private static let longestWait: Nanoseconds = .milliseconds(2_000)
  private static let second: Nanoseconds = .milliseconds(1_000)

  /// When the next packet may leave.
  private(set) var next: Nanoseconds = .min

  /// Notes a packet that leaves.
  /// - Parameters:
  ///   - rate: bits a second.
  ///   - waiting: bytes behind it.
  mutating func note(bytes: Int, rate: Int, waiting: Int, at now: Nanoseconds) {
    let least = Int64(waiting) * 8 * Self.second / Self.longestWait
    // Not of three at once: `max` of more than two makes an array in debug builds.
    let rate = max(max(Int64(rate), least), 8_000)
    next = max(next, now &- Self.burst) &+ Int64(bytes) * 8 * Self.second / rate
  }

  /// How far ahead of its pace the sender is.
  func debt(at now: Nanoseconds) -> Nanoseconds { next == .min ? 0 : max(0, next &- now) }
}
