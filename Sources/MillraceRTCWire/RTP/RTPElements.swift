/// The elements of a header extension in the one-byte and the two-byte form (RFC 8285, sections 4.2 and 4.3).
enum RTPElements {
  /// The profile of the one-byte form (RFC 8285, section 4.2).
  static let oneByteProfile: UInt16 = 0xBEDE
  /// The profile of the two-byte form, with zero application bits (RFC 8285, section 4.3).
  static let twoByteProfile: UInt16 = 0x1000
  /// The largest identifier of the one-byte form; 15 is reserved.
  static let largestOneByteIdentifier: UInt8 = 14

  /// The data of the first element with an identifier.
  static func oneByte(_ wanted: UInt8, in packet: Span<UInt8>, _ range: Range<Int>) -> Range<Int>? {
    var position = range.lowerBound
    while position < range.upperBound {
      let identifier = packet[position] >> 4
      let length = Int(packet[position] & 0x0F) + 1
      if packet[position] == 0 {
        position += 1
        continue
      }
      // Identifier 15, or 0 with a length, ends the elements.
      guard identifier != 0, identifier <= largestOneByteIdentifier else { return nil }
      let end = position + 1 + length
      guard end <= range.upperBound else { return nil }
      if identifier == wanted { return position + 1..<end }
      position = end
    }
    return nil
  }

  /// The data of the first element with an identifier; they may be empty.
  static func twoByte(_ wanted: UInt8, in packet: Span<UInt8>, _ range: Range<Int>) -> Range<Int>? {
    var position = range.lowerBound
    while position < range.upperBound {
      let identifier = packet[position]
      if identifier == 0 {
        position += 1
        continue
      }
      guard position + 2 <= range.upperBound else { return nil }
      let end = position + 2 + Int(packet[position + 1])
      guard end <= range.upperBound else { return nil }
      if identifier == wanted { return position + 2..<end }
      position = end
    }
    return nil
  }
}

extension RTPHeader {
  /// Where the data of the first header extension with an identifier lie in the packet that was parsed; nil: there is none.
  ///
  /// What follows an element that is cut off, or one with a reserved identifier, is ignored (RFC 8285, section 4.2).
  public func range(ofExtension identifier: UInt8, in packet: Span<UInt8>) -> Range<Int>? {
    guard identifier > 0, extensionRange.upperBound <= packet.count else { return nil }
    return switch extensionKind {
    case .oneByte: RTPElements.oneByte(identifier, in: packet, extensionRange)
    case .twoByte: RTPElements.twoByte(identifier, in: packet, extensionRange)
    case .none, .other: nil
    }
  }

  /// The audio level under an identifier (RFC 6464).
  public func audioLevel(_ identifier: UInt8, in packet: Span<UInt8>) -> RTPAudioLevel? {
    guard let range = range(ofExtension: identifier, in: packet), !range.isEmpty else { return nil }
    return RTPAudioLevel(byte: packet[range.lowerBound])
  }

  /// The media identification under an identifier (RFC 9143); nil also where it is empty or longer than 16 bytes.
  public func mid(_ identifier: UInt8, in packet: Span<UInt8>) -> RTPMediaID? {
    guard let range = range(ofExtension: identifier, in: packet) else { return nil }
    return RTPMediaID(packet.extracting(range))
  }

  /// The absolute send time under an identifier: 24 bits, 6 of seconds and 18 of their fraction, see `RTPAbsoluteSendTime`.
  public func absoluteSendTime(_ identifier: UInt8, in packet: Span<UInt8>) -> RTPAbsoluteSendTime? {
    guard let range = range(ofExtension: identifier, in: packet), range.count == 3 else { return nil }
    return RTPAbsoluteSendTime(rawValue: packet.uint24(at: range.lowerBound))
  }

  /// The transport-wide sequence number under an identifier (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 2).
  public func transportSequence(_ identifier: UInt8, in packet: Span<UInt8>) -> UInt16? {
    guard let range = range(ofExtension: identifier, in: packet), range.count >= 2 else { return nil }
    return packet.uint16(at: range.lowerBound)
  }

  /// Gives a packet that was already written another transport-wide sequence number, as a retransmission needs it.
  ///
  /// False: the packet has no such extension under this identifier; it is unchanged.
  public func replaceTransportSequence(
    _ identifier: UInt8, by sequence: UInt16, in packet: inout MutableSpan<UInt8>
  ) -> Bool {
    guard let range = range(ofExtension: identifier, in: packet.span), range.count >= 2 else { return false }
    packet.put(sequence, at: range.lowerBound)
    return true
  }

  /// Gives a packet that was already written another absolute send time, as a retransmission needs it.
  ///
  /// False: the packet has no such extension under this identifier; it is unchanged.
  public func replaceAbsoluteSendTime(
    _ identifier: UInt8, by time: RTPAbsoluteSendTime, in packet: inout MutableSpan<UInt8>
  ) -> Bool {
    guard let range = range(ofExtension: identifier, in: packet.span), range.count == 3 else { return false }
    packet.put24(time.rawValue, at: range.lowerBound)
    return true
  }
}
