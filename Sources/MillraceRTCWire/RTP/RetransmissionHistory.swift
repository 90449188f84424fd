/// Keeps the latest packets that were sent, to answer requests for those that were lost (RFC 4585, section 6.2.1).
///
/// A packet has the slot of its sequence number modulo the number of slots, so each replaces the one that many packets before.
/// Keeps plain RTP: a retransmission is encrypted again. All memory is requested by `init`: `slots` times `slotBytes`.
/// One thread at a time.
@safe public struct RetransmissionHistory: ~Copyable, @unchecked Sendable {
  /// What becomes of a request.
  public enum Answer: Sendable, Equatable {
    /// The retransmission was written; its length in bytes.
    case written(Int)
    /// The packet is not in the history: it was never sent, is too old, or did not fit a slot.
    case unknown
    /// The packet was retransmitted less than a round trip ago; that retransmission may still arrive.
    case tooSoon
    /// The destination is too small.
    case noRoom
  }

  private struct Slot {
    var sequence: UInt16 = 0
    /// Bytes of the packet; 0: the slot is empty.
    var count = 0
    /// When the packet was retransmitted.
    var retransmitted: Int64?
  }

  /// Packets that are kept.
  public let slots: Int
  /// The longest packet that is kept, in bytes.
  public let slotBytes: Int
  /// The stream that retransmissions use; nil: they are sent as they were, with their source's sequence numbers.
  public private(set) var stream: RTXStream?

  private let table: UnsafeMutablePointer<Slot>
  private let bytes: UnsafeMutablePointer<UInt8>

  /// Creates a history of 1 to 32,768 slots with 12 to 65,535 bytes each; other numbers become the nearest.
  public init(slots: Int = 512, slotBytes: Int = 1_500, stream: RTXStream? = nil) {
    self.slots = max(1, min(slots, 32_768))
    self.slotBytes = max(RTPHeader.fixedSize, min(slotBytes, 65_535))
    self.stream = stream
    unsafe table = .allocate(capacity: self.slots)
    unsafe table.initialize(repeating: Slot(), count: self.slots)
    // Not cleared: only what was written is read, and memory that is not used yet is none of the process.
    unsafe bytes = .allocate(capacity: self.slots * self.slotBytes)
  }

  deinit {
    unsafe table.deallocate()
    unsafe bytes.deallocate()
  }

  /// Keeps a packet that is sent. False: it is not RTP, or longer than a slot; its slot is empty then.
  @discardableResult
  public mutating func note(_ packet: Span<UInt8>) -> Bool {
    guard packet.count >= RTPHeader.fixedSize else { return false }
    let sequence = packet.uint16(at: 2)
    let index = Int(sequence) % slots
    guard packet.count <= slotBytes else {
      unsafe table[index] = Slot()
      return false
    }
    let start = unsafe bytes + index * slotBytes
    for position in packet.indices { unsafe start[position] = packet[position] }
    unsafe table[index] = Slot(sequence: sequence, count: packet.count)
    return true
  }

  /// Writes the retransmission of a packet at an offset. `roundTrip` is in nanoseconds.
  public mutating func retransmit(
    _ sequence: UInt16, at now: Int64, roundTrip: Int64, into destination: inout MutableSpan<UInt8>,
    at offset: Int = 0
  ) -> Answer {
    let index = Int(sequence) % slots
    let slot = unsafe table[index]
    guard slot.count > 0, slot.sequence == sequence else { return .unknown }
    if let before = slot.retransmitted, now &- before < roundTrip { return .tooSoon }
    let packet = unsafe Span(_unsafeStart: bytes + index * slotBytes, count: slot.count)
    let answer = Self.write(packet, &stream, into: &destination, at: offset)
    if case .written = answer { unsafe table[index].retransmitted = now }
    return answer
  }

  /// Forgets all packets.
  public mutating func reset() {
    for index in 0..<slots { unsafe table[index] = Slot() }
  }

  private static func write(
    _ packet: Span<UInt8>, _ stream: inout RTXStream?, into destination: inout MutableSpan<UInt8>,
    at offset: Int
  ) -> Answer {
    guard stream != nil else {
      guard offset >= 0, packet.count <= destination.count - offset else { return .noRoom }
      destination.put(packet, at: offset)
      return .written(packet.count)
    }
    do throws(RTPProblem) {
      return .written(try stream?.wrap(packet, into: &destination, at: offset) ?? 0)
    } catch {
      if case .noRoom = error { return .noRoom }
      return .unknown
    }
  }
}
