/// The first packet of an Ogg Opus stream (RFC 7845 section 5.1).
struct OpusHeader: Equatable {
  var channels: Int
  /// Samples at 48 kHz that a decoder discards first.
  var preSkip: Int
  /// Rate of the encoder's input in Hz, for information only; 0 if unknown.
  var inputRate: Int
  /// Gain to apply to the output, in 1/256 dB.
  var gain: Int
  /// Channel mapping family: 0 is mono or stereo in one stream.
  var mappingFamily: Int

  init(channels: Int, preSkip: Int, inputRate: Int, gain: Int = 0, mappingFamily: Int = 0) {
    self.channels = channels
    self.preSkip = preSkip
    self.inputRate = inputRate
    self.gain = gain
    self.mappingFamily = mappingFamily
  }

  static let magic = Array("OpusHead".utf8)
  static let tagsMagic = Array("OpusTags".utf8)

  /// The 19 bytes of mapping family 0.
  var bytes: [UInt8] {
    var bytes = Self.magic
    bytes.append(1)
    bytes.append(UInt8(truncatingIfNeeded: channels))
    bytes.appendLittleEndian(UInt16(truncatingIfNeeded: preSkip))
    bytes.appendLittleEndian(UInt32(truncatingIfNeeded: inputRate))
    bytes.appendLittleEndian(UInt16(truncatingIfNeeded: gain))
    bytes.append(UInt8(truncatingIfNeeded: mappingFamily))
    return bytes
  }

  /// Parses a header; nil if it is invalid or of an unsupported version. No heap.
  init?(_ bytes: Span<UInt8>) {
    guard bytes.count >= 19, bytes.starts(with: "OpusHead") else { return nil }
    // Versions 0 to 15 are compatible with 1 (RFC 7845 section 5.1).
    guard bytes[8] & 0xF0 == 0, bytes[9] > 0 else { return nil }
    channels = Int(bytes[9])
    preSkip = Int(bytes[10]) | Int(bytes[11]) << 8
    inputRate = Int(bytes[12]) | Int(bytes[13]) << 8 | Int(bytes[14]) << 16 | Int(bytes[15]) << 24
    gain = Int(Int16(bitPattern: UInt16(bytes[16]) | UInt16(bytes[17]) << 8))
    mappingFamily = Int(bytes[18])
  }

  /// The second packet: the vendor string, and comments `NAME=value` (RFC 7845 section 5.2).
  static func tags(vendor: String, comments: [String]) -> [UInt8] {
    var bytes = tagsMagic
    bytes.appendText(vendor)
    bytes.appendLittleEndian(UInt32(comments.count))
    for comment in comments { bytes.appendText(comment) }
    return bytes
  }
}

extension Span<UInt8> {
  /// True if the bytes start with a text.
  func starts(with text: StaticString) -> Bool {
    guard count >= text.utf8CodeUnitCount else { return false }
    for index in 0..<text.utf8CodeUnitCount where unsafe self[index] != text.utf8Start[index] { return false }
    return true
  }
}

extension [UInt8] {
  fileprivate mutating func appendLittleEndian(_ value: some FixedWidthInteger) {
    for shift in stride(from: 0, to: value.bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  fileprivate mutating func appendText(_ text: String) {
    appendLittleEndian(UInt32(text.utf8.count))
    append(contentsOf: text.utf8)
  }
}
