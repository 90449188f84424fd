/// Reads the packets of an RTCP datagram one by one, without a heap request (RFC 3550, section 6; reduced size: RFC 5506).
///
/// The first packet may be of any type. Nothing beyond the bytes that are given is read. Each call of `next` gets ahead or ends,
/// also where it throws: after an error in the content of a packet (`RTCPProblem.canReadNext`) the next call reads the packet
/// after it, after any other error the datagram is at its end.
public struct RTCPReader: ~Escapable {
  /// Bytes of the header that all packets have.
  static let headerSize = 4

  private let bytes: Span<UInt8>
  private var offset = 0

  /// Creates a reader of a datagram that is already decrypted.
  @_lifetime(copy bytes)
  public init(_ bytes: Span<UInt8>) { self.bytes = bytes }

  /// The next packet; nil: there is no other.
  @_lifetime(copy self)
  public mutating func next() throws(RTCPProblem) -> RTCPPacket? {
    guard offset < bytes.count else { return nil }
    let start = offset
    // Until the header is known to be valid, nothing after it can be read.
    offset = bytes.count
    let header = try RTCPHeader(bytes, at: start)
    offset = start + header.size
    return try Self.packet(bytes.extracting(start..<start + header.size - header.padding), header, start)
  }

  @_lifetime(copy bytes)
  private static func packet(
    _ bytes: Span<UInt8>, _ header: RTCPHeader, _ start: Int
  ) throws(RTCPProblem) -> RTCPPacket {
    let count = Int(header.format)
    switch header.type {
    case .senderReport: return .senderReport(try RTCPSenderReport(bytes, count, at: start))
    case .receiverReport: return .receiverReport(try RTCPReceiverReport(bytes, count, at: start))
    case .sourceDescription: return .sourceDescription(try RTCPSourceDescription(bytes, count, at: start))
    case .goodbye: return .goodbye(try RTCPGoodbye(bytes, count, at: start))
    case .transportFeedback where header.format == RTCPFeedbackFormat.nack:
      return .nack(try RTCPNack(bytes, at: start))
    case .transportFeedback where header.format == RTCPFeedbackFormat.transportWide:
      return .transportFeedback(try RTCPTransportFeedback(bytes, at: start))
    case .payloadFeedback: return try payloadFeedback(bytes, header, start)
    default: return .other(header.other(bytes, start))
    }
  }

  @_lifetime(copy bytes)
  private static func payloadFeedback(
    _ bytes: Span<UInt8>, _ header: RTCPHeader, _ start: Int
  ) throws(RTCPProblem) -> RTCPPacket {
    switch header.format {
    case RTCPFeedbackFormat.pictureLoss: return .pictureLoss(try RTCPPictureLoss(bytes, at: start))
    case RTCPFeedbackFormat.fullIntraRequest:
      return .fullIntraRequest(try RTCPFullIntraRequest(bytes, at: start))
    case RTCPFeedbackFormat.application where RTCPBitrateEstimate.isKind(of: bytes):
      return .bitrateEstimate(try RTCPBitrateEstimate(bytes, at: start))
    default: return .other(header.other(bytes, start))
    }
  }
}

/// The header of a packet, whose length and padding were checked.
struct RTCPHeader {
  let type: RTCPType
  /// The count or format.
  let format: UInt8
  /// Bytes of the packet with its header and padding.
  let size: Int
  let padding: Int

  init(_ bytes: Span<UInt8>, at start: Int) throws(RTCPProblem) {
    let room = bytes.count - start
    guard room >= RTCPReader.headerSize else { throw .headerCut(at: start, bytes: room) }
    let first = bytes[start]
    guard first >> 6 == 2 else { throw .version(first >> 6, at: start) }
    size = 4 * (Int(bytes.uint16(at: start + 2)) + 1)
    guard size <= room else { throw .packetBeyondEnd(at: start, needed: size, bytes: room) }
    type = RTCPType(rawValue: bytes[start + 1])
    format = first & 0x1F
    guard first & 0x20 != 0 else {
      padding = 0
      return
    }
    let last = bytes[start + size - 1]
    // Not a multiple of four everywhere: transport-wide feedback pads its deltas.
    guard last > 0, Int(last) <= size - RTCPReader.headerSize else {
      throw .padding(last, at: start)
    }
    padding = Int(last)
  }

  func other(_ bytes: Span<UInt8>, _ start: Int) -> RTCPOtherPacket {
    RTCPOtherPacket(type: type, format: format, range: start..<start + bytes.count)
  }
}
