// Numbers in network byte order. Positions outside of the span trap: the reader compares lengths first.

extension Span where Element == UInt8 {
  /// The 16-bit number at a position.
  package func uint16(at position: Int) -> UInt16 {
    UInt16(self[position]) << 8 | UInt16(self[position + 1])
  }

  /// The 24-bit number at a position.
  package func uint24(at position: Int) -> UInt32 {
    UInt32(uint16(at: position)) << 8 | UInt32(self[position + 2])
  }

  /// The 32-bit number at a position.
  package func uint32(at position: Int) -> UInt32 {
    UInt32(uint16(at: position)) << 16 | UInt32(uint16(at: position + 2))
  }

  /// The 64-bit number at a position.
  package func uint64(at position: Int) -> UInt64 {
    UInt64(uint32(at: position)) << 32 | UInt64(uint32(at: position + 4))
  }
}

extension MutableSpan where Element == UInt8 {
  /// Writes a 16-bit number.
  package mutating func put(_ value: UInt16, at position: Int) {
    self[position] = UInt8(truncatingIfNeeded: value >> 8)
    self[position + 1] = UInt8(truncatingIfNeeded: value)
  }

  /// Writes the low 24 bits of a number.
  package mutating func put24(_ value: UInt32, at position: Int) {
    self[position] = UInt8(truncatingIfNeeded: value >> 16)
    put(UInt16(truncatingIfNeeded: value), at: position + 1)
  }

  /// Writes a 32-bit number.
  package mutating func put(_ value: UInt32, at position: Int) {
    put(UInt16(truncatingIfNeeded: value >> 16), at: position)
    put(UInt16(truncatingIfNeeded: value), at: position + 2)
  }

  /// Writes a 64-bit number.
  package mutating func put(_ value: UInt64, at position: Int) {
    put(UInt32(truncatingIfNeeded: value >> 32), at: position)
    put(UInt32(truncatingIfNeeded: value), at: position + 4)
  }

  /// Copies bytes to a position.
  package mutating func put(_ bytes: Span<UInt8>, at position: Int) {
    for index in bytes.indices { self[position + index] = bytes[index] }
  }
}
