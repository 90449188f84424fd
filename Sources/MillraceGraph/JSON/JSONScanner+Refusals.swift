internal import MillraceCore

/// The words for everything the scanner refuses, and the few looks around that make them helpful.
extension JSONScanner {
  /// What the source is to its writer: a file or a line.
  var whole: String { source.extent.rawValue }

  /// Where something else stands, as one looks for it: a line of a file, a column of a line.
  private func place(_ offset: Int) -> String {
    let position = source.position(of: offset)
    return switch source.extent {
    case .file: "line \(position.line)"
    case .line: "column \(position.column)"
    }
  }

  // MARK: Structure

  func emptyDocument() -> Problem {
    let text = bytes.isEmpty ? "the \(whole) is empty" : "the \(whole) holds only white space"
    return problem(0..<0, text, hint: "write a JSON document, at least {}")
  }

  func trailingContent() -> Problem {
    if let comment = comment() { return comment }
    let hint =
      switch bytes[offset] {
      case UInt8(ascii: "}"), UInt8(ascii: "]"): "remove it, or add the bracket it closes"
      default: "a \(whole) holds one value"
      }
    return problem(
      foundRange, "expected the end of the \(whole) after the document, found \(found)", hint: hint)
  }

  func tooDeep() -> Problem {
    problem(
      foundRange, "arrays and objects are nested more than \(JSONDocument.depthLimit) deep",
      hint: "nest fewer of them")
  }

  func trailingComma(at comma: Int) -> Problem {
    let bracket = levels[levels.count - 1].isObject ? "'}'" : "']'"
    return problem(comma..<comma + 1, "there is a comma before \(bracket)", hint: "remove the comma")
  }

  func duplicate(_ key: String, at range: Range<Int>, first: Range<Int>) -> Problem {
    let path = path(ofLevels: levels.count - 1).appending(key: key)
    let text = "key \(Problem.quoted(key)) appears twice in this object (first at \(place(first.lowerBound)))"
    return Problem(text, in: source, range: range, path: path, hint: "keep one of them")
  }

  /// What is wanted where a value must stand.
  var wantedValue: String {
    guard let level = levels.last else { return "a value" }
    guard level.isObject else { return "item \(level.index + 1) of \(arrayName)" }
    return "a value for \(Problem.quoted(level.key ?? ""))"
  }

  /// What is wanted behind a value inside an array or object.
  var wantedAfterValue: String {
    guard let level = levels.last else { return "the end of the \(whole)" }
    guard level.isObject else { return "',' or ']' after item \(level.index + 1) of \(arrayName)" }
    return "',' or '}' after the value of \(Problem.quoted(level.key ?? ""))"
  }

  /// The innermost array, by its key when it has one.
  private var arrayName: String {
    levels.dropLast().last?.key.map(Problem.quoted) ?? "the array"
  }

  /// Something else stands here than what is wanted.
  func unexpected(_ wanted: String, hint: String? = nil) -> Problem {
    if let comment = comment() { return comment }
    if offset == bytes.count, let level = levels.last {
      let (thing, bracket) = level.isObject ? ("object", "}") : ("array", "]")
      return problem(
        foundRange, "the \(whole) ends inside the \(thing) that starts at \(place(level.start))",
        hint: "close it with '\(bracket)'")
    }
    return problem(foundRange, "expected \(wanted), found \(found)", hint: hint ?? hintForFound)
  }

  // MARK: Keys and values

  func notAKey() -> Problem {
    if let word = word(at: offset), !Self.isDigit(bytes[offset]) {
      return problem(word.range, "the key \(word.text) has no quotes", hint: "write \"\(word.text)\"")
    }
    return unexpected("a key in double quotes")
  }

  func notAValue() -> Problem {
    if bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: ".") { return badNumberStart() }
    guard let word = word(at: offset) else { return unexpected(wantedValue) }
    if Self.isNotFinite(word.text) { return notFinite(word.range) }
    let hint =
      switch word.text.lowercased() {
      case "true": "write true"
      case "false": "write false"
      case "null", "nil", "none", "undefined": "write null"
      default: "put text in double quotes"
      }
    // A key without its quotes is such a word: only those are repeated that are meant for one of JSON's.
    let told = hint.hasPrefix("write") ? "the bare word \(word.text)" : "a bare word"
    return problem(word.range, "expected \(wantedValue), found \(told)", hint: hint)
  }

  /// True inside the value of a key that tells of a secret.
  private var isInsideSecret: Bool {
    levels.contains { $0.isObject && $0.key.map { ParameterContract.Secrecy.guessed($0) != .none } == true }
  }

  // MARK: Numbers

  func noDigitAfterMinus(from start: Int) -> Problem {
    if let word = word(at: offset), Self.isNotFinite(word.text) {
      return notFinite(start..<word.range.upperBound)
    }
    if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
      return problem(
        start..<offset + 1, "a digit must stand before the decimal point", hint: "write -0.5 for -.5")
    }
    return problem(foundRange, "expected a digit after '-', found \(found)")
  }

  func leadingZero(from start: Int) -> Problem {
    var end = offset
    while end < bytes.count, Self.isDigit(bytes[end]) || bytes[end] == UInt8(ascii: ".") { end += 1 }
    let sign = bytes[start] == UInt8(ascii: "-") ? "-" : ""
    let digits = text(start..<end).drop { $0 == "-" || $0 == "0" }
    let zero = digits.first?.isNumber == true ? "" : "0"
    return problem(
      start..<end, "a number must not start with 0",
      hint: isInsideSecret ? "put text in double quotes" : "write \(sign)\(zero)\(Self.short(digits))")
  }

  func noDigitAfterPoint(from start: Int) -> Problem {
    let number = Self.short(text(start..<offset - 1)[...])
    return problem(
      foundRange, "expected a digit after the decimal point, found \(found)",
      hint: isInsideSecret ? "put text in double quotes" : "write \(number) or \(number).0")
  }

  func noDigitInExponent(from start: Int) -> Problem {
    problem(foundRange, "expected a digit in the exponent, found \(found)", hint: "1e3 means 1000")
  }

  /// Something that belongs to no number follows one at once: `48k`, `1_000`, `0x10`, `1.2.3`.
  func gluedToNumber(from start: Int) -> Problem {
    let number = Self.short(text(start..<offset)[...])
    // The digits a key begins with.
    let told = isInsideSecret ? "the number" : "the number \(number)"
    return problem(
      foundRange, "\(told) runs on with \(found)",
      hint: hintForFound ?? "write a plain decimal number, or put text in double quotes")
  }

  func tooLarge(_ range: Range<Int>) -> Problem {
    let number = isInsideSecret ? "" : " \(Self.short(text(range)[...]))"
    return problem(
      range, "the number\(number) is too large", hint: "the largest is about 1.8e308")
  }

  private func badNumberStart() -> Problem {
    let isPlus = bytes[offset] == UInt8(ascii: "+")
    let range = offset..<offset + 1
    if isPlus {
      if let word = word(at: offset + 1), Self.isNotFinite(word.text) {
        return notFinite(offset..<word.range.upperBound)
      }
      return problem(range, "a number must not start with '+'", hint: "remove the '+'")
    }
    return problem(range, "a digit must stand before the decimal point", hint: "write 0.5 for .5")
  }

  private func notFinite(_ range: Range<Int>) -> Problem {
    problem(range, "\(text(range)) is no JSON number", hint: "write a finite number, or null")
  }

  private static func isNotFinite(_ word: String) -> Bool {
    ["nan", "inf", "infinity"].contains(word.lowercased())
  }

  // MARK: Strings

  func unclosedString(from start: Int) -> Problem {
    problem(
      start..<bytes.count, "the string that starts here is not closed before the end of the \(whole)",
      hint: "close it with '\"'")
  }

  func rawControlCharacter(inStringFrom start: Int) -> Problem {
    switch bytes[offset] {
    case 0x0A, 0x0D:
      return problem(
        start..<offset, "the string that starts here is not closed on its line",
        hint: "close it with '\"', or write a line break as \\n")
    case 0x09:
      return problem(foundRange, "a tab stands inside a string", hint: "write it as \\t")
    default:
      let digits = Problem.fourDigits(Unicode.Scalar(bytes[offset]))
      return problem(
        foundRange, "the control character U+\(digits) stands inside a string",
        hint: "write it as \\u\(digits)")
    }
  }

  func unknownEscape() -> Problem {
    let next = scalar(at: offset + 1)
    let end = offset + 1 + (next.map { UTF8.width($0) } ?? 0)
    return problem(
      offset..<end, "there is no escape \(Problem.printable(text(offset..<end)))",
      hint: "write a backslash itself as \\\\; the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")
  }

  func badHexDigit(at index: Int, escapeStart: Int) -> Problem {
    problem(
      escapeStart..<index, "expected four hexadecimal digits after \\u, found \(found(at: index))",
      hint: "\\u00e9 means é")
  }

  func loneSurrogate(at range: Range<Int>) -> Problem {
    problem(
      range, "\(text(range)) is half of a surrogate pair",
      hint: "write both halves, as in \\ud83d\\ude00, or the character")
  }
}
