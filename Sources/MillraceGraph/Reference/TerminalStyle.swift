/// The layout of text on a terminal: the width, and whether to use colour.
public struct TerminalStyle: Sendable, Hashable {
  /// The columns of a line. A longer word is not broken.
  public var width: Int
  /// Whether to use bold, dim and coloured text (ECMA-48 sequences).
  public var isColoured: Bool

  /// 80 columns without colour, for files and pipes.
  public static let plain = TerminalStyle(width: 80, isColoured: false)

  /// A style with a number of columns, at least 30.
  public init(width: Int, isColoured: Bool) {
    self.width = max(width, 30)
    self.isColoured = isColoured
  }

  /// A text attribute or colour; the raw value is its ECMA-48 parameter.
  public enum Look: String, Sendable {
    /// Bold.
    case bold = "1"
    /// Dim.
    case dim = "2"
    /// Red.
    case red = "31"
    /// Green.
    case green = "32"
    /// Yellow.
    case yellow = "33"
    /// Bold cyan.
    case heading = "1;36"
  }

  /// A text with a look, if colour is allowed.
  public func paint(_ text: String, _ look: Look) -> String {
    isColoured && !text.isEmpty ? "\u{1B}[\(look.rawValue)m\(text)\u{1B}[0m" : text
  }

  /// A text wrapped at spaces, with every line indented. Keeps line breaks of the text.
  public func wrapped(_ text: String, indent: Int) -> [String] {
    let room = max(width - indent, 16)
    let margin = String(repeating: " ", count: indent)
    return text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { paragraph -> [String] in
      var lines: [String] = []
      var line = ""
      var columns = 0
      for word in paragraph.split(separator: " ") {
        let size = Self.columns(of: word)
        if columns > 0 && columns + 1 + size > room {
          lines.append(margin + line)
          (line, columns) = ("", 0)
        }
        line += (columns > 0 ? " " : "") + word
        columns += size + (columns > 0 ? 1 : 0)
      }
      lines.append(columns > 0 ? margin + line : "")
      return lines
    }
  }

  /// A text padded with trailing spaces to a number of columns.
  public static func padded(_ text: String, to columns: Int) -> String {
    text + String(repeating: " ", count: max(0, columns - Self.columns(of: text)))
  }

  /// A text padded with leading spaces to a number of columns.
  public static func padded(before text: String, to columns: Int) -> String {
    String(repeating: " ", count: max(0, columns - Self.columns(of: text))) + text
  }

  /// A text truncated to a number of columns, with an ellipsis in the last one when something is missing.
  public static func cut(_ text: String, to columns: Int) -> String {
    guard Self.columns(of: text) > columns else { return text }
    var result = ""
    var used = 0
    for character in text {
      let size = Self.columns(of: String(character))
      if used + size > columns - 1 { break }
      result.append(character)
      used += size
    }
    return result + "…"
  }

  /// The columns of a text on a terminal: two for ideographs and other wide characters, none for combining marks (Unicode Standard Annex
  /// 11).
  public static func columns(of text: some StringProtocol) -> Int {
    var columns = 0
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x20..<0x7F: columns += 1
      case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F,
        0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
        columns += 2
      default:
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: break
        default: columns += 1
        }
      }
    }
    return columns
  }
}

/// A table of text: columns as wide as their widest cell, separated by two spaces.
package struct TextTable {
  package enum Alignment { case left, right }
  private let alignments: [Alignment]
  private var rows: [[String]] = []
  private let headings: [String]

  package init(_ columns: [(heading: String, alignment: Alignment)]) {
    headings = columns.map(\.heading)
    alignments = columns.map(\.alignment)
  }

  package mutating func add(_ cells: [String]) { rows.append(cells) }

  package var isEmpty: Bool { rows.isEmpty }

  /// The lines of the table, with dim headings. Omits columns in which every row is empty.
  package func lines(_ style: TerminalStyle, indent: Int = 2) -> [String] {
    let kept = headings.indices.filter { column in rows.contains { !$0[column].isEmpty } }
    let widths = headings.indices.map { column in
      (rows.map { $0[column] } + [headings[column]]).map { TerminalStyle.columns(of: $0) }.max() ?? 0
    }
    let margin = String(repeating: " ", count: indent)
    func line(_ cells: [String]) -> String {
      var text = kept.map { column in
        alignments[column] == .left
          ? TerminalStyle.padded(cells[column], to: widths[column])
          : TerminalStyle.padded(before: cells[column], to: widths[column])
      }.joined(separator: "  ")
      while text.last == " " { text.removeLast() }
      return margin + text
    }
    let head = headings.contains { !$0.isEmpty } ? [style.paint(line(headings), .dim)] : []
    return head + rows.map(line)
  }
}
