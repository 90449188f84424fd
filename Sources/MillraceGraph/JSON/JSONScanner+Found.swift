/// What stands at a place, in words.
extension JSONScanner {
  /// A problem at some bytes; its path is the value that is being read.
  func problem(_ range: Range<Int>, _ text: String, hint: String? = nil) -> Problem {
    Problem(text, in: source, range: range, path: path(ofLevels: levels.count), hint: hint)
  }

  /// The path of what is being read inside the outermost levels.
  func path(ofLevels count: Int) -> JSONPath {
    var path = JSONPath()
    for level in levels.prefix(count) {
      if !level.isObject {
        path.steps.append(.index(level.index))
      } else if let key = level.key {
        path.steps.append(.key(key))
      }
    }
    return path
  }

  /// What stands at the current place.
  var found: String { found(at: offset) }

  /// The bytes of the character at the current place; empty at the end.
  var foundRange: Range<Int> {
    offset..<offset + (scalar(at: offset).map { UTF8.width($0) } ?? 0)
  }

  /// What stands at a place, such as `'x'`, `the end of the file` or `the invisible character U+00A0`.
  func found(at index: Int) -> String {
    guard let scalar = scalar(at: index) else { return "the end of the \(whole)" }
    switch scalar {
    case " ": return "a space"
    case "\t": return "a tab"
    case "\n", "\r": return "the end of the line"
    case _ where scalar.value < 0x20 || scalar.value == 0x7F:
      return "the control character U+\(Problem.fourDigits(scalar))"
    case _ where Self.isInvisible(scalar): return "the invisible character U+\(Problem.fourDigits(scalar))"
    default: return "'\(scalar)'"
    }
  }

  /// Advice that follows from the character at the current place alone.
  var hintForFound: String? {
    guard let scalar = scalar(at: offset) else { return nil }
    switch scalar {
    case "'", "`": return "write text in double quotes"
    case "\u{201C}", "\u{201D}", "\u{201E}", "\u{2018}", "\u{2019}", "\u{00AB}", "\u{00BB}", "\u{FF02}":
      return "write text in straight double quotes"
    case "\u{FF0C}", "\u{3001}", "\u{FF1A}", "\u{FF5B}", "\u{FF5D}", "\u{3010}", "\u{3011}", "\u{FF3B}",
      "\u{FF3D}":
      return "use the ASCII punctuation , : { } [ ]"
    case _ where Self.isInvisible(scalar): return "delete it"
    case _ where scalar.value >= 0x80 && scalar.properties.isAlphabetic: return "put text in double quotes"
    default: return nil
    }
  }

  /// The refusal of a comment when one starts here.
  func comment() -> Problem? {
    guard offset < bytes.count else { return nil }
    switch (bytes[offset], offset + 1 < bytes.count ? bytes[offset + 1] : 0) {
    case (UInt8(ascii: "/"), UInt8(ascii: "/")), (UInt8(ascii: "/"), UInt8(ascii: "*")):
      return problem(offset..<offset + 2, "JSON has no comments", hint: "remove the comment")
    case (UInt8(ascii: "#"), _):
      return problem(offset..<offset + 1, "JSON has no comments", hint: "remove the comment")
    default: return nil
    }
  }

  /// The scalar at a place of the source, which is valid UTF-8; nil at its end.
  func scalar(at index: Int) -> Unicode.Scalar? {
    guard index < bytes.count else { return nil }
    return text(index..<min(index + 4, bytes.count)).unicodeScalars.first
  }

  /// The longest word without quotes at a place: letters, digits and what names are made of. Nil when none starts there.
  func word(at start: Int) -> (text: String, range: Range<Int>)? {
    var end = start
    while end < bytes.count,
      Self.continuesWord(bytes[end]) || (end > start && bytes[end] == UInt8(ascii: "-"))
    {
      end += 1
    }
    guard end > start, bytes[start] < 0x80 else { return nil }
    return (Self.short(text(start..<end)[...]), start..<end)
  }

  func text(_ range: Range<Int>) -> String { source.text(in: range) }

  /// A word or number cut to the length problems show.
  static func short(_ text: Substring) -> String {
    text.count > Problem.longestName ? "\(text.prefix(Problem.longestName - 1))…" : String(text)
  }

  /// Whether a byte makes a bare word or number longer.
  static func continuesWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "."):
      true
    default: byte >= 0x80
    }
  }

  private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .spaceSeparator, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
      true
    default: false
    }
  }
}
