internal import MillraceCore

extension Problem {
  /// The maximum length of an excerpt in characters; longer lines are cut around the place.
  static let excerptWidth = 100
  /// The characters before the place that are kept when a line is cut.
  static let excerptLead = 40
  /// The longest source line that is shown, in bytes: the whole line is searched for secrets first.
  static let maxExcerptLineBytes = 16_384

  /// The description, followed by the source line and a caret under the place:
  ///
  /// ```
  /// graph.json:3:16: error: expected ',' or '}' after the value of "id", found '"'
  ///   3 |   "id": "mic"  "type": "audio.read"
  ///     |                ^
  /// ```
  ///
  /// Tabs and control characters take one column, wide characters two, so that the caret lines up. Only the description without a
  /// source, and when the line contains a secret or is longer than 16 KiB.
  public var excerpt: String {
    guard let source, let position else { return description }
    let line = source.lineRange(around: range.lowerBound)
    guard line.count <= Self.maxExcerptLineBytes else { return description }
    let parts = hiddenRanges.filter { $0.overlaps(line) && !$0.isEmpty }
    guard parts.allSatisfy({ source.text(in: $0).contains("${") }), isFreeOfSecrets(source.text(in: line))
    else {
      return description
    }
    let place = min(range.lowerBound, line.upperBound)
    let end = max(place, min(range.upperBound, line.upperBound))

    let (before, cutBefore) = Self.lastScalars(
      of: source, in: line.lowerBound..<place, limit: Self.excerptLead)
    let (after, cutAfter) = Self.firstScalars(
      of: source, in: place..<line.upperBound, limit: Self.excerptWidth - before.count)
    let marked = source.bytes[place..<end].count { !SourceFile.continuesCharacter($0) }

    let number = String(position.line)
    let margin = String(repeating: " ", count: number.count)
    let shown =
      (cutBefore ? "…" : "") + Self.displayed(before) + Self.displayed(after) + (cutAfter ? "…" : "")
    let indent = Self.width(of: before) + (cutBefore ? 1 : 0)
    let tail = max(0, Self.width(of: after.prefix(marked)) - 1)
    let caret = String(repeating: " ", count: indent) + "^" + String(repeating: "~", count: tail)
    return "\(description)\n  \(number) | \(shown)\n  \(margin) | \(caret)"
  }

  /// False for a line that contains a secret of the graph, or the value of a key that suggests one: in a file that cannot be read,
  /// the key is all there is to go by.
  private func isFreeOfSecrets(_ line: String) -> Bool {
    if let secrets, secrets.redacting(line) != line { return false }
    let isInside = path.steps.contains { step in
      if case .key(let name) = step { ParameterContract.Secrecy.guessed(name) != .none } else { false }
    }
    // A value from the environment is not in the line.
    if isInside && !line.contains("${") { return false }
    return !ParameterContract.Secrecy.hasSecrets(inJSON: line)
  }

  /// The last scalars of a byte range, and whether some were left out. Walks back from the end, so that the cost does not depend on
  /// the length of the line.
  private static func lastScalars(
    of source: SourceFile, in range: Range<Int>, limit: Int
  ) -> (ArraySlice<Unicode.Scalar>, cut: Bool) {
    var start = range.upperBound
    var count = 0
    while start > range.lowerBound, count < limit {
      start -= 1
      if !SourceFile.continuesCharacter(source.bytes[start]) { count += 1 }
    }
    return (scalars(of: source, in: start..<range.upperBound)[...], start > range.lowerBound)
  }

  /// The first scalars of a byte range, and whether some were left out.
  private static func firstScalars(
    of source: SourceFile, in range: Range<Int>, limit: Int
  ) -> (ArraySlice<Unicode.Scalar>, cut: Bool) {
    // A scalar has at most four bytes: enough for `limit` scalars and one more.
    let bytes = range.lowerBound..<min(range.upperBound, range.lowerBound + 4 * (limit + 1))
    let all = scalars(of: source, in: bytes)
    return (all.prefix(limit), all.count > limit || bytes.upperBound < range.upperBound)
  }

  private static func scalars(of source: SourceFile, in range: Range<Int>) -> [Unicode.Scalar] {
    Array(source.text(in: range).unicodeScalars)
  }

  private static func displayed(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    var text = String.UnicodeScalarView()
    for scalar in scalars {
      text.append(scalar == "\t" ? " " : isUnprintable(scalar) ? "\u{FFFD}" : scalar)
    }
    return String(text)
  }

  private static func width(of scalars: ArraySlice<Unicode.Scalar>) -> Int {
    scalars.reduce(0) { $0 + width(of: $1) }
  }

  /// The columns of a scalar on a terminal: two in the ranges of Unicode Standard Annex 11 that are entirely wide, none for combining
  /// marks.
  private static func width(of scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      return 2
    default:
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .enclosingMark: return 0
      default: return 1
      }
    }
  }
}
