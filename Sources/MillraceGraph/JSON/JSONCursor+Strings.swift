extension JSONCursor {
  /// Reads the string whose opening quote is the next byte, with its escapes resolved (RFC 8259 section 7).
  mutating func readString() throws(JSONSyntaxError) -> String {
    let start = offset
    advance()
    let first = offset
    skipPlainCharacters()
    let plain = first..<offset
    // Most strings have no escape.
    if skip(UInt8(ascii: "\"")) { return String(decoding: slice(plain), as: UTF8.self) }
    var text = Array(slice(plain))
    while true {
      switch byte {
      case nil: throw unterminatedString(from: start)
      case UInt8(ascii: "\"")?:
        advance()
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\")?: try readEscape(into: &text, stringStart: start)
      case let byte?: throw unescaped(byte, inStringFrom: start)
      }
      let run = offset
      skipPlainCharacters()
      text.append(contentsOf: slice(run..<offset))
    }
  }

  /// Resolves the escape whose backslash is the next byte.
  private mutating func readEscape(into text: inout [UInt8], stringStart: Int) throws(JSONSyntaxError) {
    guard let kind = byte(ahead: 1) else { throw unterminatedString(from: stringStart) }
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(kind)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      text.append(contentsOf: try readUnicodeEscape(stringStart: stringStart).utf8)
      return
    default: throw invalidEscape()
    }
    advance(by: 2)
  }

  /// Resolves `\uXXXX`, or the two of them that make a surrogate pair.
  private mutating func readUnicodeEscape(stringStart: Int) throws(JSONSyntaxError) -> Unicode.Scalar {
    let start = offset
    let high = try readHexDigits(stringStart: stringStart)
    if let scalar = Unicode.Scalar(high) { return scalar }
    guard high < 0xDC00, byte == UInt8(ascii: "\\"), byte(ahead: 1) == UInt8(ascii: "u") else {
      throw unpairedSurrogate(at: start..<offset)
    }
    let low = try readHexDigits(stringStart: stringStart)
    guard 0xDC00...0xDFFF ~= low,
      let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
    else { throw unpairedSurrogate(at: start..<start + 6) }
    return scalar
  }

  /// Reads a `\uXXXX` and returns the value of its four digits.
  private mutating func readHexDigits(stringStart: Int) throws(JSONSyntaxError) -> UInt32 {
    var value: UInt32 = 0
    for index in 2..<6 {
      guard let byte = byte(ahead: index) else { throw unterminatedString(from: stringStart) }
      guard let digit = Self.hexDigit(byte) else {
        throw JSONSyntaxError(.invalidHexDigit(found: found(at: offset + index)), offset..<offset + index)
      }
      value = value << 4 | digit
    }
    advance(by: 6)
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

  // MARK: Errors

  private func unterminatedString(from start: Int) -> JSONSyntaxError {
    JSONSyntaxError(.unterminated, start..<source.bytes.count)
  }

  private func unescaped(_ byte: UInt8, inStringFrom start: Int) -> JSONSyntaxError {
    switch byte {
    case 0x0A, 0x0D: JSONSyntaxError(.lineBreak, start..<offset)
    default: JSONSyntaxError(.controlCharacter(Unicode.Scalar(byte)), foundRange)
    }
  }

  private func invalidEscape() -> JSONSyntaxError {
    let width = scalar(at: offset + 1).map { UTF8.width($0) } ?? 0
    let range = offset..<offset + 1 + width
    return JSONSyntaxError(.invalidEscape(Problem.printable(text(range))), range)
  }

  private func unpairedSurrogate(at range: Range<Int>) -> JSONSyntaxError {
    JSONSyntaxError(.unpairedSurrogate(text(range)), range)
  }
}
