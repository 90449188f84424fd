/// Reads big-endian numbers from bytes, one after the other.
struct ByteCursor: Sendable {
  private let bytes: [UInt8]
  private(set) var position: Int

  init(_ bytes: [UInt8], at position: Int = 0) {
    self.bytes = bytes
    self.position = position
  }

  var left: Int { bytes.count - position }

  /// A number of so many bytes; nil: there are fewer.
  mutating func number(_ count: Int) -> UInt64? {
    guard let part = take(count) else { return nil }
    return part.reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func int(_ count: Int) -> Int? { number(count).flatMap { Int(exactly: $0) } }

  mutating func take(_ count: Int) -> [UInt8]? {
    guard count >= 0, left >= count else { return nil }
    defer { position += count }
    return Array(bytes[position..<position + count])
  }

  mutating func rest() -> [UInt8] { take(left) ?? [] }

  /// A number in LEB128: seven bits a byte, the lowest first. nil: it does not end within the bytes, or is too large.
  mutating func variable() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      guard let byte = number(1) else { return nil }
      value |= (byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }
}

extension [UInt8] {
  /// Appends a big-endian number of so many bytes.
  mutating func append(_ value: some BinaryInteger, bytes count: Int) {
    for shift in stride(from: (count - 1) * 8, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  /// Appends a number in LEB128.
  mutating func append(variable value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}
