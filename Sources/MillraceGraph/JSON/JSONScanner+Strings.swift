extension JSONScanner {
  /// The string whose opening quote stands here, with its escapes resolved. Ends behind the closing quote.
  mutating func string() throws(Problem) -> String {
    let start = offset
    offset += 1
    let first = offset
    skipPlainCharacters()
    if offset < bytes.count, bytes[offset] == UInt8(ascii: "\"") {
      offset += 1
      return String(decoding: bytes[first..<offset - 1], as: UTF8.self)
    }
    var text = Array(bytes[first..<offset])
    while true {
      guard offset < bytes.count else { throw unclosedString(from: start) }
      switch bytes[offset] {
      case UInt8(ascii: "\""):
        offset += 1
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        try escape(into: &text, stringStart: start)
      default:
        throw rawControlCharacter(inStringFrom: start)
      }
      let run = offset
      skipPlainCharacters()
      text.append(contentsOf: bytes[run..<offset])
    }
  }

  /// Skips to the next quote, backslash or control character.
  private mutating func skipPlainCharacters() {
    var index = offset
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
      index += 1
    }
    offset = index
  }

  /// Resolves the escape whose backslash stands here.
  private mutating func escape(into text: inout [UInt8], stringStart: Int) throws(Problem) {
    guard offset + 1 < bytes.count else { throw unclosedString(from: stringStart) }
    switch bytes[offset + 1] {
    case UInt8(ascii: "\""): text.append(UInt8(ascii: "\""))
    case UInt8(ascii: "\\"): text.append(UInt8(ascii: "\\"))
    case UInt8(ascii: "/"): text.append(UInt8(ascii: "/"))
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      let scalar = try unicodeEscape(stringStart: stringStart)
      text.append(contentsOf: scalar.utf8)
      return
    default: throw unknownEscape()
    }
    offset += 2
  }

  /// Resolves `\uXXXX`, or the two of them that make a surrogate pair (RFC 8259 section 7).
  private mutating func unicodeEscape(stringStart: Int) throws(Problem) -> Unicode.Scalar {
    let start = offset
    let high = try fourHexDigits(stringStart: stringStart)
    if let scalar = Unicode.Scalar(high) { return scalar }
    let isPair =
      high < 0xDC00 && offset + 1 < bytes.count && bytes[offset] == UInt8(ascii: "\\")
      && bytes[offset + 1] == UInt8(ascii: "u")
    guard isPair else { throw loneSurrogate(at: start..<offset) }
    let low = try fourHexDigits(stringStart: stringStart)
    guard 0xDC00...0xDFFF ~= low,
      let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
    else { throw loneSurrogate(at: start..<start + 6) }
    return scalar
  }

  /// The value of the four digits of a `\uXXXX` that stands here; ends behind them.
  private mutating func fourHexDigits(stringStart: Int) throws(Problem) -> UInt32 {
    let start = offset
    var value: UInt32 = 0
    for index in start + 2..<start + 6 {
      guard index < bytes.count else { throw unclosedString(from: stringStart) }
      guard let digit = Self.hexDigit(bytes[index]) else { throw badHexDigit(at: index, escapeStart: start) }
      value = value << 4 | digit
    }
    offset = start + 6
    return value
  }

  private static func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A")) + 10
    default: nil
    }
  }
}
