internal import MillraceGraph

/// A level meter drawn with characters: the bar shows the RMS and the mark the peak, over a range of 60 dB.
struct LevelBar {
  /// Bottom of the scale in dBFS; speech below it is hardly audible.
  static let floor = -60.0
  /// Levels in dBFS above which the bar is yellow and red: the alignment level and the permitted maximum of EBU R 68.
  static let yellow = -18.0
  static let red = -9.0
  /// Cells filled by eighths from the left.
  private static let eighths = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

  /// Draws a meter with the given number of cells.
  static func draw(rms: Double, peak: Double, cells: Int, style: TerminalStyle) -> String {
    func place(_ level: Double) -> Double { (min(max(level, floor), 0) - floor) / -floor * Double(cells) }
    let filled = Int((place(rms) * 8).rounded())
    let mark = peak > floor ? min(Int(place(peak)), cells - 1) : -1
    var bar = ""
    for cell in 0..<cells {
      let rest = filled - cell * 8
      let sign = rest >= 8 ? "█" : rest > 0 ? eighths[rest] : cell == mark ? "│" : "·"
      let level = floor + (Double(cell) + 0.5) / Double(cells) * -floor
      bar += style.paint(sign, rest > 0 || cell == mark ? colour(of: level) : .dim)
    }
    return bar
  }

  private static func colour(of level: Double) -> TerminalStyle.Look {
    level < yellow ? .green : level < red ? .yellow : .red
  }
}
