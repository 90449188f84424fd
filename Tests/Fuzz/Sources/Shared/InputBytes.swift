/// Takes numbers and pieces from the front of an input. Where it ends, numbers are 0 and pieces shorter.
struct InputBytes {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isEmpty: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func uint16() -> UInt16 {
    let high = UInt16(byte())
    return high << 8 | UInt16(byte())
  }

  mutating func uint32() -> UInt32 {
    let high = UInt32(uint16())
    return high << 16 | UInt32(uint16())
  }

  /// At most so many bytes.
  mutating func take(_ count: Int) -> [UInt8] {
    let piece = Array(rest.prefix(count))
    rest = rest.dropFirst(count)
    return piece
  }
}
