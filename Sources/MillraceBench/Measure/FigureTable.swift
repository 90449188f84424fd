/// Figures as lines of a table, printed as they are measured.
struct FigureTable {
  /// An earlier run to compare with, if any.
  let earlier: SavedFigures?

  private static let columns = [
    (title: "suite", width: 12), (title: "case", width: 56), (title: "of", width: 14),
    (title: "median", width: 18), (title: "low .. high", width: 20), (title: "runs", width: 6),
  ]

  /// The titles of the columns.
  var header: String {
    Self.columns.reduce("") { $0 + Self.pad($1.title, $1.width) }
      + (earlier == nil ? "goal" : Self.pad("goal", 10) + "then -> now")
  }

  /// The line of one figure.
  func row(_ figure: Figure) -> String {
    var cells = [figure.suite, figure.name, figure.of]
    if !figure.skipReason.isEmpty {
      cells.append("left out: \(figure.skipReason)")
    } else {
      cells += [
        "\(short(figure.value)) \(figure.unit)", "\(short(figure.low)) .. \(short(figure.high))",
        "\(figure.runs)",
      ]
    }
    var line = ""
    for (cell, column) in zip(cells, Self.columns) { line += Self.pad(cell, column.width) }
    guard figure.skipReason.isEmpty else { return line.trimmingSpaces }
    guard let earlier else { return (line + figure.goal).trimmingSpaces }
    return (line + Self.pad(figure.goal, 10) + earlier.change(to: figure)).trimmingSpaces
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }
}

extension String {
  /// Without trailing spaces.
  fileprivate var trimmingSpaces: String {
    var rest = Substring(self)
    while rest.last == " " { rest.removeLast() }
    return String(rest)
  }
}
