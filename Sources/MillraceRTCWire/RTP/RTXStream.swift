/// The retransmission stream of a source: its own SSRC, payload type and sequence numbers (RFC 4588, session-multiplexed by SSRC).
public struct RTXStream: Sendable, Equatable {
  /// Bytes of the original sequence number in front of the payload (RFC 4588, section 4).
  public static let overhead = 2

  /// The synchronization source of the retransmissions.
  public let ssrc: UInt32
  /// Their payload type, 0 to 127.
  public let payloadType: UInt8
  /// The sequence number of the next one.
  public private(set) var sequence: UInt16

  /// Creates a stream whose first packet has the sequence number `sequence`; that should be random.
  public init(ssrc: UInt32, payloadType: UInt8, sequence: UInt16) {
    self.ssrc = ssrc
    self.payloadType = payloadType & 0x7F
    self.sequence = sequence
  }

  /// Writes the retransmission of a packet and gives its length; the next one has the following sequence number.
  ///
  /// Header extensions are copied, padding is not. Throws what `RTPHeader` throws, and `noRoom`; then nothing is written.
  public mutating func wrap(
    _ packet: Span<UInt8>, into destination: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(RTPProblem) -> Int {
    let header = try RTPHeader(parsing: packet)
    let start = header.payload.lowerBound
    let size = header.payload.upperBound + Self.overhead
    try RTXStream.checkRoom(size, destination, offset)
    destination.put(packet.extracting(0..<start), at: offset)
    // Without the bit of padding; the marker stays.
    destination[offset] = packet[0] & ~0x20
    destination[offset + 1] = packet[1] & 0x80 | payloadType
    destination.put(sequence, at: offset + 2)
    destination.put(ssrc, at: offset + 8)
    destination.put(header.sequence, at: offset + start)
    destination.put(packet.extracting(header.payload), at: offset + start + Self.overhead)
    sequence &+= 1
    return size
  }

  /// Writes the packet that a retransmission contains and gives its length; `ssrc` and `payloadType` are those of the source.
  ///
  /// Throws `retransmissionTooShort` also for probes, which are retransmissions without a payload: drop them.
  public static func unwrap(
    _ packet: Span<UInt8>, ssrc: UInt32, payloadType: UInt8, into destination: inout MutableSpan<UInt8>,
    at offset: Int = 0
  ) throws(RTPProblem) -> Int {
    let header = try RTPHeader(parsing: packet)
    guard header.payload.count >= overhead else {
      throw .retransmissionTooShort(payload: header.payload.count)
    }
    let start = header.payload.lowerBound
    let size = header.payload.upperBound - overhead
    try checkRoom(size, destination, offset)
    destination.put(packet.extracting(0..<start), at: offset)
    destination[offset] = packet[0] & ~0x20
    destination[offset + 1] = packet[1] & 0x80 | payloadType & 0x7F
    destination.put(packet.uint16(at: start), at: offset + 2)
    destination.put(ssrc, at: offset + 8)
    destination.put(packet.extracting(start + overhead..<header.payload.upperBound), at: offset + start)
    return size
  }

  private static func checkRoom(
    _ size: Int, _ destination: borrowing MutableSpan<UInt8>, _ offset: Int
  ) throws(RTPProblem) {
    let room = destination.count - offset
    guard offset >= 0, size <= room else { throw .noRoom(needed: size, room: max(0, room)) }
  }
}
