internal import MillraceGraph

/// A level meter of text: the bar is the RMS, the mark the peak, over the last 60 dB below full scale.
struct LevelBar {
  /// Bottom of the scale in dBFS; below it speech is inaudible beside anything else.
  static let floor = -60.0
  /// From here on the bar is yellow, and red: the marks of EBU R 68 meters (-18 alignment, -9 permitted maximum).
  static let yellow = -18.0
  static let red = -9.0
  /// Eighths of a cell, from the left.
  private static let eighths = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

  /// A bar of so many cells.
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
