internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph

/// The section with the turns of a dialogue: one bar per turn, all on the same scale.
struct TurnSection {
  let turns: [Turn]

  /// Most turns drawn; the last ones are chosen.
  private static let mostTurns = 60

  /// The phase between two marks.
  private enum Phase: String, CaseIterable {
    case speech, closing, waiting, opening, playing

    init?(after mark: Turn.Mark, before next: Turn.Mark) {
      switch mark {
      case .speechStarted: self = .speech
      case .speechEnded, .sent, .noticed: self = next.isOfReply ? .waiting : .closing
      case .replyStarted: self = .opening
      case .replyAudible: self = .playing
      case .replyFinished, .interrupted: return nil
      }
    }

    var label: String {
      switch self {
      case .speech: "user speaks"
      case .closing: "end of speech is sent and noticed"
      case .waiting: "waiting for the reply"
      case .opening: "reply is buffered"
      case .playing: "reply is heard"
      }
    }
  }

  func write(to html: inout HTMLWriter) {
    guard !turns.isEmpty else { return }
    html.section(
      "Turns",
      "From the first sample of speech to the last sample of the reply. The time on the right is the answer time: from the end of the user's speech to the start of the reply."
    ) {
      html in
      let shown = turns.suffix(Self.mostTurns)
      let longest = shown.map { $0.end - $0.start }.max() ?? 1
      html.element("div", class: "r-key") { html in
        for phase in Phase.allCases {
          html.element("span") { html in
            html.raw("<i class=\"r-dot r-\(phase.rawValue)\"></i>\(phase.label)")
          }
        }
        html.element("span") { $0.raw("<i class=\"r-dot r-cut\"></i>interrupted") }
      }
      html.element("div", class: "r-card") { html in
        for turn in shown { write(turn, longest: max(1, longest), to: &html) }
      }
      if turns.count > shown.count {
        html.element("p", "Shows the last \(shown.count) of \(turns.count) turns.", class: "r-sub")
      }
    }
  }

  private func write(_ turn: Turn, longest: Nanoseconds, to html: inout HTMLWriter) {
    let marks = turn.marks
    func percent(_ time: Nanoseconds) -> String {
      Figures.number(100 * Double(time - turn.start) / Double(longest), decimals: 2)
    }
    html.element("div", class: "r-turn") { html in
      html.element("span", "\(turn.label)\(Figures.fixed(Double(turn.start) / 1e9, decimals: 2)) s")
      html.element("div", class: "r-track") { html in
        for (first, second) in zip(marks, marks.dropFirst()) {
          guard let phase = Phase(after: first.mark, before: second.mark) else { continue }
          let width = Figures.number(100 * Double(second.time - first.time) / Double(longest), decimals: 2)
          html.raw(
            "<i class=\"r-\(phase.rawValue)\" style=\"left:\(percent(first.time))%;width:\(width)%\" title=\"\(phase.label): \(Figures.duration(second.time - first.time))\"></i>"
          )
        }
        if let cut = turn.times[.interrupted] {
          html.raw("<i class=\"r-cut\" style=\"left:\(percent(cut))%\" title=\"interrupted\"></i>")
        }
      }
      html.element("b", turn.answerTime.map { Figures.duration($0 / 1_000 * 1_000) } ?? "no answer")
    }
  }
}
