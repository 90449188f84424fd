/// The header that this package writes: RIFF header, a chunk reserved for 64-bit sizes, format, and data chunk header. Its length is
/// constant, so it can be rewritten in place.
struct WAVHeaderLayout: Sendable {
  /// The header bytes.
  private(set) var bytes: [UInt8] = []
  private let frameByteCount: Int64
  private let largest: Int64
  /// Offset of the frame count in the `fact` chunk, for float files.
  private var factOffset: Int?

  /// Longest RIFF file: its size field has 32 bits and excludes the first 8 bytes. All ones means "unknown".
  static let largestRIFF: Int64 = 0xFFFF_FFFE + 8
  /// Offset of the reserved chunk, and size of its body: a ds64 chunk without a table.
  private static let reserveOffset = 12
  private static let reserveSize: UInt32 = 28

  init(format: WAVFormat, largest: Int64) {
    frameByteCount = Int64(format.frameByteCount)
    self.largest = largest
    append("RIFF")
    append(UInt32(0))
    append("WAVE")
    append("JUNK")
    append(Self.reserveSize)
    bytes += [UInt8](repeating: 0, count: Int(Self.reserveSize))
    appendFormat(format)
    if format.encoding.isFloat {
      append("fact")
      append(UInt32(4))
      factOffset = bytes.count
      append(UInt32(0))
    }
    append("data")
    append(UInt32(0))
  }

  var byteCount: Int64 { Int64(bytes.count) }

  /// Sets the sizes for `frameCount` frames. Does not allocate.
  mutating func update(frameCount: Int64) {
    let data = frameCount * frameByteCount
    let riff = byteCount + data - 8
    let wide = byteCount + data > largest
    put(wide ? "RF64" : "RIFF", at: 0)
    put(UInt64(wide ? 0xFFFF_FFFF : riff), bytes: 4, at: 4)
    put(wide ? "ds64" : "JUNK", at: Self.reserveOffset)
    let body = Self.reserveOffset + 8
    put(UInt64(wide ? riff : 0), bytes: 8, at: body)
    put(UInt64(wide ? data : 0), bytes: 8, at: body + 8)
    put(UInt64(wide ? frameCount : 0), bytes: 8, at: body + 16)
    if let factOffset { put(UInt64(min(frameCount, 0xFFFF_FFFF)), bytes: 4, at: factOffset) }
    put(UInt64(wide ? 0xFFFF_FFFF : data), bytes: 4, at: bytes.count - 4)
  }

  /// The shortest correct form: 16 bytes for integers, 18 for floats, and 40 (WAVE_FORMAT_EXTENSIBLE) for more than two channels, as
  /// mmreg.h requires.
  private mutating func appendFormat(_ format: WAVFormat) {
    let extensible = format.channels > 2
    let tag: UInt16 = format.encoding.isFloat ? 3 : 1
    let rate = UInt32(format.sampleRate)
    append("fmt ")
    append(UInt32(extensible ? 40 : format.encoding.isFloat ? 18 : 16))
    append(extensible ? 0xFFFE : tag)
    append(UInt16(format.channels))
    append(rate)
    append(UInt32(truncatingIfNeeded: format.sampleRate * format.frameByteCount))
    append(UInt16(format.frameByteCount))
    append(UInt16(format.encoding.byteCount * 8))
    if extensible {
      append(UInt16(22))
      append(UInt16(format.encoding.byteCount * 8))
      // No loudspeaker positions: the channels are only numbered.
      append(UInt32(0))
      append(tag)
      // The rest of KSDATAFORMAT_SUBTYPE_PCM and _IEEE_FLOAT (ksmedia.h).
      bytes += [0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71]
    } else if format.encoding.isFloat {
      append(UInt16(0))
    }
  }

  private mutating func append(_ name: StaticString) {
    for index in 0..<4 { bytes.append(Self.byte(name, index)) }
  }

  private mutating func append(_ value: some FixedWidthInteger) {
    for shift in stride(from: 0, to: value.bitWidth, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  private mutating func put(_ name: StaticString, at offset: Int) {
    for index in 0..<4 { bytes[offset + index] = Self.byte(name, index) }
  }

  private mutating func put(_ value: UInt64, bytes count: Int, at offset: Int) {
    for index in 0..<count { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
  }

  private static func byte(_ name: StaticString, _ index: Int) -> UInt8 {
    unsafe name.utf8Start[index]
  }
}
