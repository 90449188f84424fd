/// Percent-encoding of text in addresses, RFC 3986 section 2.1.
public enum PercentEncoding {
  /// Encodes every byte of a text's UTF-8 except unreserved characters: letters, digits, `-`, `.`, `_` and `~` (section 2.3).
  ///
  /// Services sign this strictest form: a space becomes `%20`, never `+`, and `/`, `*` and `'` are encoded too.
  public static func encode(_ text: String) -> String {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      if isUnreserved(byte) {
        encoded.append(byte)
      } else {
        encoded.append(UInt8(ascii: "%"))
        encoded.append(digits[Int(byte >> 4)])
        encoded.append(digits[Int(byte & 15)])
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// Upper case, as section 2.1 recommends and services sign it.
  private static let digits = Array("0123456789ABCDEF".utf8)

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
