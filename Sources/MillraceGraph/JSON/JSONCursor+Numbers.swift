extension JSONCursor {
  /// A number with fewer characters and no exponent is far inside the range of a double, which ends at 1.8e308.
  private static let surelyFinite = 300

  /// Reads the number that starts here with a digit or a minus sign (RFC 8259 section 6):
  /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
  mutating func readNumber() throws(JSONSyntaxError) -> JSONNode {
    let start = offset
    _ = skip(UInt8(ascii: "-"))
    let firstByte = byte
    let digits = skipDigits()
    if digits == 0 { throw noDigitAfterMinus(from: start) }
    if firstByte == UInt8(ascii: "0"), digits > 1 { throw leadingZero(from: start) }
    if skip(UInt8(ascii: ".")), skipDigits() == 0 { throw noDigitAfterPoint(from: start) }
    let hasExponent = skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E"))
    if hasExponent {
      _ = skip(UInt8(ascii: "+")) || skip(UInt8(ascii: "-"))
      if skipDigits() == 0 { throw JSONSyntaxError(.noDigitInExponent(found: found), foundRange) }
    }
    if let next = byte, Self.continuesWord(next) { throw unexpectedAfterNumber(from: start) }

    let range = start..<offset
    let number = JSONNumber(checked: String(decoding: slice(range), as: UTF8.self))
    if hasExponent || range.count >= Self.surelyFinite, !number.double.isFinite {
      throw JSONSyntaxError(.tooLarge(Self.shortened(number.literal)), range)
    }
    return JSONNode(.number(number), range)
  }

  private func noDigitAfterMinus(from start: Int) -> JSONSyntaxError {
    if let error = notFinite(from: start, wordAt: offset) { return error }
    if byte == UInt8(ascii: ".") {
      return JSONSyntaxError(.noDigitBeforePoint(sign: "-"), start..<offset + 1)
    }
    return JSONSyntaxError(.noDigitAfterMinus(found: found), foundRange)
  }

  private func leadingZero(from start: Int) -> JSONSyntaxError {
    let end = endOfDigits(from: offset)
    let literal = text(start..<end)
    let digits = literal.drop { $0 == "-" || $0 == "0" }
    let sign = literal.hasPrefix("-") ? "-" : ""
    let zero = digits.first?.isNumber == true ? "" : "0"
    return JSONSyntaxError(.leadingZero(cure: Self.shortened(sign + zero + digits)), start..<end)
  }

  private func noDigitAfterPoint(from start: Int) -> JSONSyntaxError {
    let number = Self.shortened(text(start..<offset - 1))
    return JSONSyntaxError(.noDigitAfterPoint(number: number, found: found), foundRange)
  }

  private func unexpectedAfterNumber(from start: Int) -> JSONSyntaxError {
    let number = Self.shortened(text(start..<offset))
    return JSONSyntaxError(.followed(number: number, by: found, hint: hintForFound), foundRange)
  }

  /// What is wrong with a number that starts here with `+` or `.`; nil when it starts otherwise.
  func invalidNumberStart() -> JSONSyntaxError? {
    switch byte {
    case UInt8(ascii: "+"):
      notFinite(from: offset, wordAt: offset + 1) ?? JSONSyntaxError(.leadingPlus, offset..<offset + 1)
    case UInt8(ascii: "."): JSONSyntaxError(.noDigitBeforePoint(sign: ""), offset..<offset + 1)
    default: nil
    }
  }

  /// The refusal of `NaN` or an infinity whose name stands at an offset, with the sign before it; nil for any other word.
  func notFinite(from start: Int, wordAt index: Int) -> JSONSyntaxError? {
    guard let word = word(at: index), ["nan", "inf", "infinity"].contains(word.text.lowercased()) else {
      return nil
    }
    let range = start..<word.range.upperBound
    return JSONSyntaxError(.notFinite(text(range)), range)
  }
}
