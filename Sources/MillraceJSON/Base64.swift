/// Base64, RFC 4648 section 4: the standard alphabet, with padding.
public enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  /// Encodes bytes as text, with padding.
  public static func encode(_ bytes: [UInt8]) -> String {
    var result: [UInt8] = []
    result.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var group: UInt32 = 0
      for place in 0..<3 { group = group << 8 | (place < count ? UInt32(bytes[start + place]) : 0) }
      for place in 0..<4 {
        result.append(place > count ? padding : alphabet[Int(group >> UInt32(18 - 6 * place)) & 63])
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Decodes text, strictly: padding is required, line breaks and other characters are not allowed, and the bits that encode nothing
  /// must be zero (RFC 4648 sections 3.2, 3.3 and 3.5). Nil for anything else.
  public static func decode(_ text: String) -> [UInt8]? {
    let bytes = Array(text.utf8)
    guard bytes.count.isMultiple(of: 4) else { return nil }
    let padded = bytes.reversed().prefix { $0 == padding }.count
    guard padded <= 2 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count / 4 * 3)
    var group: UInt32 = 0
    for (index, byte) in bytes.dropLast(padded).enumerated() {
      guard let digit = digit(byte) else { return nil }
      group = group << 6 | digit
      guard index % 4 == 3 else { continue }
      for shift in [16, 8, 0] { result.append(UInt8(truncatingIfNeeded: group >> UInt32(shift))) }
      group = 0
    }
    // The last characters hold 8 or 16 bits and 4 or 2 that must be zero.
    switch padded {
    case 2:
      guard group & 0xF == 0 else { return nil }
      result.append(UInt8(truncatingIfNeeded: group >> 4))
    case 1:
      guard group & 0x3 == 0 else { return nil }
      result.append(UInt8(truncatingIfNeeded: group >> 10))
      result.append(UInt8(truncatingIfNeeded: group >> 2))
    default: break
    }
    return result
  }

  private static func digit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
