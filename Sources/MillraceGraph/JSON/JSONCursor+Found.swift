// What messages say about the bytes at a position.
extension JSONCursor {
  /// What is at the position.
  var found: String { found(at: offset) }

  /// The bytes of the character at the position; empty at the end.
  var foundRange: Range<Int> {
    offset..<offset + (scalar(at: offset).map { UTF8.width($0) } ?? 0)
  }

  /// What is at an offset: `'x'`, `the end of the file`, `the invisible character U+00A0`.
  func found(at index: Int) -> String {
    guard let scalar = scalar(at: index) else { return "the end of the \(source.extent.rawValue)" }
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

  /// The cure that the character at the position suggests by itself: quotes or punctuation of another kind, an invisible character.
  var hintForFound: String? {
    guard let scalar = scalar(at: offset) else { return nil }
    switch scalar {
    case "'", "`": return "use double quotes"
    case "\u{201C}", "\u{201D}", "\u{201E}", "\u{2018}", "\u{2019}", "\u{00AB}", "\u{00BB}", "\u{FF02}":
      return "use straight double quotes"
    case "\u{FF0C}", "\u{3001}", "\u{FF1A}", "\u{FF5B}", "\u{FF5D}", "\u{3010}", "\u{3011}", "\u{FF3B}",
      "\u{FF3D}":
      return "use ASCII punctuation: , : { } [ ]"
    case _ where Self.isInvisible(scalar): return "remove it"
    case _ where scalar.value >= 0x80 && scalar.properties.isAlphabetic: return "put strings in double quotes"
    default: return nil
    }
  }

  /// The refusal of a comment when one starts at the position.
  func comment() -> JSONSyntaxError? {
    switch (byte, byte(ahead: 1)) {
    case (UInt8(ascii: "/")?, UInt8(ascii: "/")?), (UInt8(ascii: "/")?, UInt8(ascii: "*")?):
      JSONSyntaxError(.comment, offset..<offset + 2)
    case (UInt8(ascii: "#")?, _): JSONSyntaxError(.comment, offset..<offset + 1)
    default: nil
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
