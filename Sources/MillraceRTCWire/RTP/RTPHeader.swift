/// The header of an RTP packet (RFC 3550, section 5.1), and where the parts of the packet lie.
///
/// Parsing and writing make no heap request. Ranges count from the first byte of the packet that was parsed; a header that was
/// created to be written has empty ranges.
public struct RTPHeader: Sendable, Equatable {
  /// Bytes of a header without contributing sources and extension.
  public static let fixedSize = 12

  /// The form of the header extension (RFC 3550, section 5.3.1; RFC 8285).
  public enum ExtensionKind: Sendable, Equatable {
    /// No header extension.
    case none
    /// Elements with a header of one byte, identifiers 1 to 14 (RFC 8285, section 4.2).
    case oneByte
    /// Elements with a header of two bytes, identifiers 1 to 255 (RFC 8285, section 4.3).
    case twoByte
    /// Another form, by its 16-bit profile.
    case other(UInt16)
  }

  /// The marker: for video the last packet of a picture, for sound the first of a talk spurt.
  public var marker: Bool
  /// The payload type, 0 to 127.
  public var payloadType: UInt8
  /// The sequence number.
  public var sequence: UInt16
  /// The timestamp, in units of the payload's clock.
  public var timestamp: UInt32
  /// The synchronization source.
  public var ssrc: UInt32
  /// The number of contributing sources, 0 to 15.
  public private(set) var contributorCount = 0
  /// The form of the header extension.
  public private(set) var extensionKind = ExtensionKind.none
  /// Where the elements of the header extension lie, without its first four bytes.
  public private(set) var extensionRange = 0..<0
  /// Where the payload lies, without padding.
  public private(set) var payload = 0..<0
  /// Bytes of padding at the end.
  public private(set) var padding = 0

  /// Creates a header to be written. The high bit of the payload type is ignored.
  public init(
    payloadType: UInt8, sequence: UInt16, timestamp: UInt32, ssrc: UInt32, marker: Bool = false
  ) {
    self.marker = marker
    self.payloadType = payloadType & 0x7F
    self.sequence = sequence
    self.timestamp = timestamp
    self.ssrc = ssrc
  }

  /// Parses the header of a packet and checks that all of its parts lie in the packet.
  public init(parsing packet: Span<UInt8>) throws(RTPProblem) {
    guard packet.count >= Self.fixedSize else { throw .tooShort(bytes: packet.count) }
    guard packet[0] >> 6 == 2 else { throw .version(packet[0] >> 6) }
    self.init(
      payloadType: packet[1], sequence: packet.uint16(at: 2), timestamp: packet.uint32(at: 4),
      ssrc: packet.uint32(at: 8), marker: packet[1] & 0x80 != 0)
    contributorCount = Int(packet[0] & 0x0F)
    var end = Self.fixedSize + 4 * contributorCount
    guard end <= packet.count else { throw .contributorsBeyondEnd(needed: end, bytes: packet.count) }
    if packet[0] & 0x10 != 0 { end = try parseExtension(packet, at: end) }
    if packet[0] & 0x20 != 0 { padding = try Self.padding(packet, payloadStart: end) }
    payload = end..<packet.count - padding
  }

  /// The contributing source at an index; nil: there are not so many, or the packet is not the one that was parsed.
  public func contributor(_ index: Int, in packet: Span<UInt8>) -> UInt32? {
    guard index >= 0, index < contributorCount else { return nil }
    let position = Self.fixedSize + 4 * index
    return position + 4 <= packet.count ? packet.uint32(at: position) : nil
  }

  /// Parses the header extension at a position and gives its end.
  private mutating func parseExtension(_ packet: Span<UInt8>, at start: Int) throws(RTPProblem) -> Int {
    guard start + 4 <= packet.count else {
      throw .extensionBeyondEnd(needed: start + 4, bytes: packet.count)
    }
    let profile = packet.uint16(at: start)
    let end = start + 4 + 4 * Int(packet.uint16(at: start + 2))
    guard end <= packet.count else { throw .extensionBeyondEnd(needed: end, bytes: packet.count) }
    extensionRange = start + 4..<end
    extensionKind =
      switch profile {
      case RTPElements.oneByteProfile: .oneByte
      // The low four bits are for the application (RFC 8285, section 4.3).
      case RTPElements.twoByteProfile...(RTPElements.twoByteProfile | 0x0F): .twoByte
      default: .other(profile)
      }
    return end
  }

  private static func padding(_ packet: Span<UInt8>, payloadStart: Int) throws(RTPProblem) -> Int {
    let room = packet.count - payloadStart
    // Without a byte after the header the last byte is none of padding.
    let padding = room > 0 ? Int(packet[packet.count - 1]) : 0
    guard padding > 0, padding <= room else {
      throw .paddingBeyondPayload(padding: padding, payload: room)
    }
    return padding
  }
}

extension RTPHeader {
  /// Writes the header without contributing sources and padding, and gives its length in bytes; the payload follows.
  ///
  /// Throws `noRoom`, or `extensionIdentifier` for an extension that the one-byte form cannot carry; then nothing is written.
  public func write(
    _ extensions: RTPExtensions = RTPExtensions(), identifiers: RTPExtensionIdentifiers = .none,
    into destination: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(RTPProblem) -> Int {
    let elements = try extensions.size(identifiers)
    let size = Self.fixedSize + (elements > 0 ? 4 + elements : 0)
    let room = destination.count - offset
    guard offset >= 0, size <= room else { throw .noRoom(needed: size, room: max(0, room)) }
    destination[offset] = elements > 0 ? 0x90 : 0x80
    destination[offset + 1] = payloadType & 0x7F | (marker ? 0x80 : 0)
    destination.put(sequence, at: offset + 2)
    destination.put(timestamp, at: offset + 4)
    destination.put(ssrc, at: offset + 8)
    guard elements > 0 else { return size }
    destination.put(RTPElements.oneByteProfile, at: offset + Self.fixedSize)
    destination.put(UInt16(elements / 4), at: offset + Self.fixedSize + 2)
    extensions.write(identifiers, into: &destination, at: offset + Self.fixedSize + 4, size: elements)
    return size
  }
}
