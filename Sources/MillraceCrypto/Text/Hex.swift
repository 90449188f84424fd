/// Bytes as hexadecimal digits, two per byte.
public enum Hex {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Returns two lower-case digits per byte, as `sha256sum` prints them.
  public static func encode(_ bytes: Span<UInt8>) -> String {
    let text = [UInt8](capacity: 2 * bytes.count) { text in
      for index in bytes.indices {
        text.append(digits[Int(bytes[index] >> 4)])
        text.append(digits[Int(bytes[index] & 15)])
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of digits in upper or lower case. Returns nil for an odd number of digits, and for any other character, such as a
  /// space, a colon or a sign.
  public static func decode(_ text: String) -> [UInt8]? {
    let digits = text.utf8
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      guard let value = value(of: digit) else { return nil }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return bytes
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
