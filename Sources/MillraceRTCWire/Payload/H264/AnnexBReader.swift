/// Finds the NAL units of a byte stream with start codes (ITU-T H.264 annex B).
///
/// Start codes have three or four bytes. Zero bytes behind a NAL unit belong to the stream, not to the unit, and are left out, as are units
/// without a byte. Every byte is looked at once; nothing is copied.
public struct AnnexBReader: ~Escapable {
  private let bytes: Span<UInt8>
  /// Behind the start code of the next NAL unit.
  private var position: Int
  /// True when zero or more zero bytes and a start code were found at the beginning.
  let hasStartCode: Bool

  /// Begins at the first start code. Bytes before it that are not 0 make the stream one without NAL units.
  @_lifetime(copy bytes)
  public init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
    let code = Self.startCode(in: bytes, from: 0)
    hasStartCode = code < bytes.count && Self.end(in: bytes, from: 0, to: code) == 0
    position = hasStartCode ? code + Self.startCodeBytes : bytes.count
  }

  /// The position of the next NAL unit, its header included; nil after the last.
  public mutating func next() -> Range<Int>? {
    while position < bytes.count {
      let start = position
      let code = Self.startCode(in: bytes, from: start)
      position = min(code + Self.startCodeBytes, bytes.count)
      let end = Self.end(in: bytes, from: start, to: code)
      if end > start { return start..<end }
    }
    return nil
  }

  private static let startCodeBytes = 3

  /// The position of the next 00 00 01, or the end.
  private static func startCode(in bytes: Span<UInt8>, from start: Int) -> Int {
    var index = start + 2
    while index < bytes.count {
      switch bytes[index] {
      case 0: index += 1
      case 1 where bytes[index - 1] == 0 && bytes[index - 2] == 0: return index - 2
      default: index += 3
      }
    }
    return bytes.count
  }

  /// The end of what lies between two positions, without the zero bytes at its end.
  private static func end(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
    var end = end
    while end > start, bytes[end - 1] == 0 { end -= 1 }
    return end
  }
}

/// The NAL units of an access unit, by start codes or by given positions.
struct H264NALUnits: ~Escapable {
  private var reader: AnnexBReader
  private let ranges: Span<Range<Int>>
  private var index = 0

  @_lifetime(copy bytes)
  init(annexB bytes: Span<UInt8>) {
    reader = AnnexBReader(bytes)
    ranges = Span()
  }

  @_lifetime(copy ranges)
  init(_ ranges: Span<Range<Int>>) {
    reader = AnnexBReader(Span())
    self.ranges = ranges
  }

  /// The next unit that has a byte.
  mutating func next() -> Range<Int>? {
    while index < ranges.count {
      index += 1
      if !ranges[index - 1].isEmpty { return ranges[index - 1] }
    }
    return reader.next()
  }
}
