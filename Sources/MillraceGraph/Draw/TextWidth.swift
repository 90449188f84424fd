/// Estimates the width of a text without its font.
///
/// By the widths of Helvetica (Adobe's font metrics, in thousandths of the font size) plus a sixth: the reader's sans-serif font is
/// rarely wider than that.
enum TextWidth {
  /// Widths of the printable ASCII characters, starting at the space.
  private static let ascii: [Int16] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
  ]
  private static let margin = 1.16
  /// The width of Helvetica Bold relative to Helvetica, averaged over the letters.
  private static let boldness = 1.07

  /// The width of a text in the unit of the font size.
  static func of(_ text: String, size: Double, bold: Bool = false) -> Double {
    var thousandths = 0
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 32..<127: thousandths += Int(ascii[Int(scalar.value) - 32])
      // Ideographs, kana, hangul and full-width forms are square.
      case 0x1100...0x115F, 0x2E80...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60,
        0x1F300...0x3FFFD:
        thousandths += 1000
      default: thousandths += 600
      }
    }
    return Double(thousandths) / 1000 * size * margin * (bold ? boldness : 1)
  }
}
