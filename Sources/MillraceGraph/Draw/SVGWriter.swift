/// Writes the text of an SVG document: short numbers, escaped texts.
package struct SVGWriter {
  package private(set) var text = ""

  package init() {}

  /// A raw line, already SVG.
  package mutating func line(_ raw: String) {
    text += raw
    text += "\n"
  }

  /// A text with style classes; `x` and `y` are the start of its baseline.
  package mutating func text(_ content: String, _ classes: String, x: Double, y: Double) {
    line(
      "<text class=\"\(classes)\" x=\"\(Self.number(x))\" y=\"\(Self.number(y))\">\(Self.escaped(content))</text>"
    )
  }

  package mutating func rectangle(
    _ classes: String, x: Double, y: Double, width: Double, height: Double, radius: Double = 0
  ) {
    let corner = radius > 0 ? " rx=\"\(Self.number(radius))\"" : ""
    line(
      "<rect class=\"\(classes)\" x=\"\(Self.number(x))\" y=\"\(Self.number(y))\" width=\"\(Self.number(width))\" height=\"\(Self.number(height))\"\(corner)/>"
    )
  }

  package mutating func circle(_ classes: String, x: Double, y: Double, radius: Double) {
    line(
      "<circle class=\"\(classes)\" cx=\"\(Self.number(x))\" cy=\"\(Self.number(y))\" r=\"\(Self.number(radius))\"/>"
    )
  }

  package mutating func path(_ classes: String, _ data: String) {
    line("<path class=\"\(classes)\" d=\"\(data)\"/>")
  }

  /// A number with at most one decimal.
  package static func number(_ value: Double) -> String { Figures.number(value) }

  /// A text with XML markup escaped, and the characters that XML 1.0 forbids replaced by U+FFFD.
  package static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default:
        let isForbidden = scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF
        result.unicodeScalars.append(isForbidden ? "\u{FFFD}" : scalar)
      }
    }
    return result
  }
}
