/// A violation of RFC 8259, or of the stricter rules of `JSONDocument.scan`: what, and at which bytes.
///
/// Holds what its message needs. In the cases, `found` describes what is there instead, and `hint` is a cure that follows from it.
struct JSONSyntaxError: Error {
  enum Kind {
    case encoding(EncodingError)
    case structure(StructureError)
    case number(NumberError)
    case string(StringError)
  }

  enum EncodingError {
    case tooLarge
    case byteOrderMark
    case utf16
    case invalidByte(UInt8, UTF8.ValidationError.Kind)
  }

  enum StructureError {
    case empty
    case unexpected(expected: String, found: String, hint: String?)
    case trailingContent(found: String)
    case unclosed(isObject: Bool, start: Int)
    case trailingComma(before: Character)
    case tooDeep
    case comment
    case duplicateKey(String, first: Int)
    case unquotedKey(String)
    case unquotedValue(expected: String, word: String)
  }

  enum NumberError {
    case noDigitAfterMinus(found: String)
    case noDigitBeforePoint(sign: String)
    case noDigitAfterPoint(number: String, found: String)
    case noDigitInExponent(found: String)
    case leadingZero(cure: String)
    case leadingPlus
    case followed(number: String, by: String, hint: String?)
    case tooLarge(String)
    case notFinite(String)
  }

  enum StringError {
    case unterminated
    case lineBreak
    case controlCharacter(Unicode.Scalar)
    case invalidEscape(String)
    case invalidHexDigit(found: String)
    case unpairedSurrogate(String)
  }

  let kind: Kind
  let range: Range<Int>

  init(_ kind: EncodingError, _ range: Range<Int>) { (self.kind, self.range) = (.encoding(kind), range) }
  init(_ kind: StructureError, _ range: Range<Int>) { (self.kind, self.range) = (.structure(kind), range) }
  init(_ kind: NumberError, _ range: Range<Int>) { (self.kind, self.range) = (.number(kind), range) }
  init(_ kind: StringError, _ range: Range<Int>) { (self.kind, self.range) = (.string(kind), range) }

  /// The error as a problem.
  /// - Parameters:
  ///   - path: the value that was being read.
  ///   - hidesNumbers: the value is secret, so the message must not repeat the digits it begins with.
  func problem(in source: SourceFile, path: JSONPath, hidesNumbers: Bool) -> Problem {
    let message =
      switch kind {
      case .encoding(let error): error.message(in: source)
      case .structure(let error): error.message(in: source)
      case .number(let error): error.message(hidesNumbers: hidesNumbers)
      case .string(let error): error.message
      }
    return Problem(
      message.text, code: message.code, in: source, range: range, path: path, hint: message.hint)
  }
}

// MARK: - Messages

private typealias Message = (code: Problem.Code, text: String, hint: String?)

/// The cure for text where JSON wants a string.
private let addQuotes = "put strings in double quotes"

extension SourceFile {
  /// What its author calls the source: a file or a line.
  fileprivate var noun: String { extent.rawValue }

  /// Another place of the source, as its author looks for it: a line of a file, a column of a line.
  fileprivate func describePlace(_ offset: Int) -> String {
    let position = position(of: offset)
    return switch extent {
    case .file: "on line \(position.line)"
    case .line: "at column \(position.column)"
    }
  }
}

extension JSONSyntaxError.EncodingError {
  fileprivate func message(in source: SourceFile) -> Message {
    let isFile = source.extent == .file
    let verb = isFile ? "save it as" : "send"
    switch self {
    case .tooLarge:
      return (
        .tooLarge, "the \(source.noun) is larger than \(SourceFile.sizeLimit >> 20) MiB",
        isFile ? "check that it is the right file" : "send less"
      )
    case .byteOrderMark:
      return (.notUTF8, "the \(source.noun) starts with a byte order mark", "\(verb) UTF-8 without a BOM")
    case .utf16:
      return (.notUTF8, "the \(source.noun) is encoded in UTF-16", "\(verb) UTF-8 without a BOM")
    case .invalidByte(let byte, let kind):
      let digits = String(byte, radix: 16, uppercase: true)
      return (
        .notUTF8, "the \(source.noun) is not valid UTF-8: byte 0x\(digits) \(Self.reason(kind))",
        "\(verb) UTF-8"
      )
    }
  }

  private static func reason(_ kind: UTF8.ValidationError.Kind) -> String {
    switch kind {
    case .unexpectedContinuationByte: "is a continuation byte without a lead byte"
    case .surrogateCodePointByte: "begins an encoded surrogate"
    case .overlongEncodingByte: "begins an overlong encoding"
    case .truncatedScalar: "begins a truncated sequence"
    default: "does not begin a character"
    }
  }
}

extension JSONSyntaxError.StructureError {
  fileprivate func message(in source: SourceFile) -> Message {
    switch self {
    case .empty:
      let state = source.bytes.isEmpty ? "is empty" : "contains only white space"
      return (.emptyDocument, "the \(source.noun) \(state)", "write a JSON value, at least {}")
    case .unexpected(let expected, let found, let hint):
      return (.unexpectedToken, "expected \(expected), found \(found)", hint)
    case .trailingContent(let found):
      let opening = ["'}'": "'{'", "']'": "'['"][found]
      return (
        .trailingContent, "expected the end of the \(source.noun) after the JSON value, found \(found)",
        opening.map { "remove it, or add the matching \($0)" } ?? "a \(source.noun) contains one value"
      )
    case .unclosed(let isObject, let start):
      let (noun, bracket) = isObject ? ("object", "}") : ("array", "]")
      let place = source.describePlace(start)
      return (
        .unclosedBracket, "the \(source.noun) ends inside the \(noun) that starts \(place)",
        "close it with '\(bracket)'"
      )
    case .trailingComma(let bracket):
      return (.trailingComma, "trailing comma before '\(bracket)'", "remove it")
    case .tooDeep:
      return (
        .nestedTooDeep, "arrays and objects are nested more than \(JSONDocument.depthLimit) levels deep",
        "use fewer levels"
      )
    case .comment: return (.comment, "JSON does not allow comments", "remove the comment")
    case .duplicateKey(let key, let first):
      let place = source.describePlace(first)
      return (.duplicateKey, "duplicate key \(Problem.quoted(key)), first \(place)", "remove one of them")
    case .unquotedKey(let word): return (.unquoted, "the key \(word) is not quoted", "write \"\(word)\"")
    case .unquotedValue(let expected, let word):
      guard let literal = Self.literal(meantBy: word) else {
        // It may be a credential without its quotes, and is not repeated.
        return (.unquoted, "expected \(expected), found an unquoted word", addQuotes)
      }
      return (.unquoted, "expected \(expected), found \(word)", "write \(literal)")
    }
  }

  /// The literal name that another language writes as this word.
  private static func literal(meantBy word: String) -> String? {
    switch word.lowercased() {
    case "true": "true"
    case "false": "false"
    case "null", "nil", "none", "undefined": "null"
    default: nil
    }
  }
}

extension JSONSyntaxError.NumberError {
  fileprivate func message(hidesNumbers: Bool) -> Message {
    let (text, hint) = parts(hidesNumbers: hidesNumbers)
    return (.invalidNumber, text, hint)
  }

  private func parts(hidesNumbers: Bool) -> (String, String?) {
    switch self {
    case .noDigitAfterMinus(let found): return ("expected a digit after '-', found \(found)", nil)
    case .noDigitBeforePoint(let sign):
      return ("missing digit before the decimal point", "write \(sign)0.5 instead of \(sign).5")
    case .noDigitAfterPoint(let number, let found):
      return (
        "expected a digit after the decimal point, found \(found)",
        hidesNumbers ? addQuotes : "write \(number) or \(number).0"
      )
    case .noDigitInExponent(let found):
      return ("expected a digit in the exponent, found \(found)", "write it like 1e3")
    case .leadingZero(let cure):
      return ("a number must not start with 0", hidesNumbers ? addQuotes : "write \(cure)")
    case .leadingPlus: return ("a number must not start with '+'", "remove the '+'")
    case .followed(let number, let found, let hint):
      return (
        "\(hidesNumbers ? "a number" : "the number \(number)") is followed by \(found)",
        hint ?? "write a plain decimal number, or \(addQuotes)"
      )
    case .tooLarge(let number):
      return ("the number\(hidesNumbers ? "" : " \(number)") is too large", "the maximum is about 1.8e308")
    case .notFinite(let word): return ("\(word) is not a JSON number", "use a finite number or null")
    }
  }
}

extension JSONSyntaxError.StringError {
  fileprivate var message: Message {
    switch self {
    case .unterminated: return (.unterminatedString, "unterminated string", "add the closing '\"'")
    case .lineBreak:
      return (
        .unterminatedString, "unterminated string: it must end on its line",
        "add the closing '\"', or write a line break as \\n"
      )
    case .controlCharacter("\t"): return (.controlCharacter, "unescaped tab in a string", "write \\t")
    case .controlCharacter(let scalar):
      let digits = Problem.fourDigits(scalar)
      return (.controlCharacter, "unescaped control character U+\(digits) in a string", "write \\u\(digits)")
    case .invalidEscape(let escape):
      return (
        .invalidEscape, "invalid escape \(escape)",
        "write a backslash as \\\\; the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"
      )
    case .invalidHexDigit(let found):
      return (
        .invalidEscape, "expected four hexadecimal digits after \\u, found \(found)", "write é as \\u00e9"
      )
    case .unpairedSurrogate(let escape):
      return (
        .invalidEscape, "unpaired surrogate \(escape)",
        "write both surrogates, such as \\ud83d\\ude00, or the character itself"
      )
    }
  }
}
