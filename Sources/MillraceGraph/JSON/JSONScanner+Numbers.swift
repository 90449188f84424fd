extension JSONScanner {
  /// Numbers shorter than this and without an exponent are far inside the range of a double (it ends at 1.8e308).
  private static let surelyFinite = 300

  /// The number that starts here with a digit or a minus sign: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
  mutating func number() throws(Problem) -> JSONNode {
    let start = offset
    if bytes[offset] == UInt8(ascii: "-") { offset += 1 }
    let firstDigit = offset
    if skipDigits() == 0 { throw noDigitAfterMinus(from: start) }
    if bytes[firstDigit] == UInt8(ascii: "0"), offset - firstDigit > 1 { throw leadingZero(from: start) }

    var hasExponent = false
    if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
      offset += 1
      if skipDigits() == 0 { throw noDigitAfterPoint(from: start) }
    }
    if offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "e") {
      hasExponent = true
      offset += 1
      if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") {
        offset += 1
      }
      if skipDigits() == 0 { throw noDigitInExponent(from: start) }
    }
    if offset < bytes.count, Self.continuesWord(bytes[offset]) { throw gluedToNumber(from: start) }

    let number = JSONNumber(checked: String(decoding: bytes[start..<offset], as: UTF8.self))
    if hasExponent || offset - start >= Self.surelyFinite, !number.double.isFinite {
      throw tooLarge(start..<offset)
    }
    return JSONNode(.number(number), start..<offset)
  }

  /// Skips digits and says how many there were.
  private mutating func skipDigits() -> Int {
    let start = offset
    while offset < bytes.count, Self.isDigit(bytes[offset]) { offset += 1 }
    return offset - start
  }

  static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}
