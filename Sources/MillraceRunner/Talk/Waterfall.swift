internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph

/// Breaks down the answer time of a turn: from the end of the user's speech to the first sample of the reply that is heard.
struct Waterfall: Equatable {
  struct Step: Equatable {
    var label: String
    var time: Nanoseconds
  }

  /// In order. Their times add up to `total`.
  let steps: [Step]
  var total: Nanoseconds { steps.reduce(0) { $0 + $1.time } }

  /// nil when no reply was heard in this turn, or the end of the user's speech is unknown.
  init?(_ turn: Turn) {
    guard turn.times[.speechEnded] != nil, turn.times[.replyAudible] != nil else { return nil }
    let marks = turn.marks.drop { $0.mark != .speechEnded }.prefix { !Self.isBehind($0.mark) }
    var steps: [Step] = []
    for (first, second) in zip(marks, marks.dropFirst()) {
      steps.append(Step(label: Self.label(second.mark), time: second.time - first.time))
    }
    self.steps = steps
  }

  private static func isBehind(_ mark: Turn.Mark) -> Bool { mark == .replyFinished || mark == .interrupted }

  private static func label(_ mark: Turn.Mark) -> String {
    switch mark {
    case .sent: "sent"
    case .noticed: "end noticed"
    case .replyStarted: "first byte"
    case .replyAudible: "audible"
    case .speechStarted, .speechEnded, .replyFinished, .interrupted: mark.rawValue
    }
  }

  /// `answered in 1.05 s: end noticed 612 ms, first byte 210 ms, audible 231 ms`.
  var text: String {
    "answered in \(Self.time(total)): "
      + steps.map { "\($0.label) \(Self.time($0.time))" }.joined(separator: ", ")
  }

  /// A bar in which each step has a length proportional to its time.
  func bar(cells: Int, style: TerminalStyle) -> String {
    let looks: [TerminalStyle.Look] = [.yellow, .heading, .green, .red]
    var bar = ""
    var (passed, drawn) = (Nanoseconds(0), 0)
    for (index, step) in steps.enumerated() {
      passed += step.time
      let end = total > 0 ? Int((Double(passed) / Double(total) * Double(cells)).rounded()) : 0
      let sign = style.isColoured ? "█" : String(index + 1)
      bar += style.paint(String(repeating: sign, count: max(0, end - drawn)), looks[index % looks.count])
      drawn = max(drawn, end)
    }
    return bar
  }

  private static func time(_ time: Nanoseconds) -> String {
    Figures.duration((time + 500_000) / 1_000_000 * 1_000_000)
  }
}
