internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph

/// Where the time between the user's last word and the bot's first one went, in one line.
struct Waterfall: Equatable {
  struct Step: Equatable {
    var words: String
    var time: Nanoseconds
  }

  /// In order; their times add up to `total`.
  let steps: [Step]
  var total: Nanoseconds { steps.reduce(0) { $0 + $1.time } }

  /// nil: no answer to this turn was heard, or nobody knows when the user stopped.
  init?(_ turn: Turn) {
    guard turn.times[.speechEnded] != nil, turn.times[.replyAudible] != nil else { return nil }
    let marks = turn.marks.drop { $0.mark != .speechEnded }.prefix { !Self.isBehind($0.mark) }
    var steps: [Step] = []
    for (first, second) in zip(marks, marks.dropFirst()) {
      steps.append(Step(words: Self.words(second.mark), time: second.time - first.time))
    }
    self.steps = steps
  }

  private static func isBehind(_ mark: Turn.Mark) -> Bool { mark == .replyFinished || mark == .interrupted }

  private static func words(_ mark: Turn.Mark) -> String {
    switch mark {
    case .sent: "sent"
    case .noticed: "the service hears the end"
    case .replyStarted: "first byte"
    case .replyAudible: "heard"
    case .speechStarted, .speechEnded, .replyFinished, .interrupted: mark.rawValue
    }
  }

  /// `answered in 1.05 s: the service hears the end 612 ms, first byte 210 ms, heard 231 ms`.
  var text: String {
    "answered in \(Self.time(total)): "
      + steps.map { "\($0.words) \(Self.time($0.time))" }.joined(separator: ", ")
  }

  /// The steps as a bar, each as long as its share.
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
