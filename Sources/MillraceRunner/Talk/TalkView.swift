internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph

/// How a board looks: lines that stay, and the few at the bottom that are drawn anew. Pure.
struct TalkView {
  let style: TerminalStyle

  // MARK: Lines that stay

  /// One line of the dialogue, broken where the window ends.
  func text(of line: TalkBoard.Line) -> [String] {
    switch line {
    case .user(let text): spoken("you", text, .bold)
    case .bot(let text, let isCut): spoken("bot", isCut ? text + " …" : text, .heading)
    case .note(let text): marked("·", text, .dim)
    case .problem(let text): marked("!", text, .yellow)
    }
  }

  private func spoken(_ who: String, _ text: String, _ look: TerminalStyle.Look) -> [String] {
    let lines = style.wrapped(text, indent: 5)
    return lines.enumerated().map { index, line in
      index == 0 ? style.paint(who, look) + "  " + line.dropFirst(5) : line
    }
  }

  private func marked(_ sign: String, _ text: String, _ look: TerminalStyle.Look) -> [String] {
    style.wrapped(text, indent: 5).enumerated().map { index, line in
      style.paint(index == 0 ? "  \(sign)  " + line.dropFirst(5) : line, look)
    }
  }

  // MARK: Lines that change

  /// What the lines at the bottom are made of.
  struct Moment {
    var title: String
    var time: Nanoseconds
    var levels: [(label: String, level: EventBoard.Level)] = []
    var waterfall: Waterfall?
    var typed: String?
    var isPressed = false
    var isLeaving = false
  }

  func panel(_ board: TalkBoard, _ moment: Moment) -> [String] {
    let room = style.width - 1
    var lines: [String] = []
    if !board.hearing.isEmpty { lines.append(TerminalStyle.cut("you  \(board.hearing)", to: room)) }
    if !board.answering.isEmpty { lines.append(TerminalStyle.cut("bot  \(board.answering)", to: room)) }
    lines.append(style.paint(TerminalStyle.cut(head(board, moment), to: room), .bold))
    lines += meters(moment.levels, room)
    if let waterfall = moment.waterfall {
      if room >= 60 { lines.append("  " + waterfall.bar(cells: min(60, room - 4), style: style)) }
      lines.append(style.paint(TerminalStyle.cut("  " + waterfall.text, to: room), .dim))
    }
    for keys in Self.keys(board.parts) { lines.append(style.paint(TerminalStyle.cut(keys, to: room), .dim)) }
    if let typed = moment.typed { lines.append("> " + Self.tail(typed, to: room - 3) + "▏") }
    return lines
  }

  private func head(_ board: TalkBoard, _ moment: Moment) -> String {
    let seconds = Int(moment.time / 1_000_000_000)
    let clock = "\(seconds / 60):\(seconds % 60 < 10 ? "0" : "")\(seconds % 60)"
    var words = [moment.title, clock, moment.isLeaving ? "leaving" : Self.words(board)]
    if moment.isPressed { words.append("you have the button") }
    if board.isMuted { words.append("muted") }
    return words.joined(separator: "  ")
  }

  /// Whose turn it is, in words.
  static func words(_ board: TalkBoard) -> String {
    switch board.state {
    case .idle, .connecting: "connecting"
    case .listening:
      switch board.parts.mode {
      case .duplex: "listening: just speak"
      case .pushToTalk: "your turn: press space"
      case .tapToTalk: "your turn: press enter, then speak"
      }
    case .hearing: "hearing you"
    case .thinking: "thinking"
    case .responding, .draining: "answering"
    case .suspecting: "answering, held: is that you?"
    case .yielding: "making way"
    case .reconnecting: "connection lost, trying again"
    case .closing: "saying good-bye"
    case .closed: "over"
    }
  }

  private func meters(_ levels: [(label: String, level: EventBoard.Level)], _ room: Int) -> [String] {
    let names = levels.map { TerminalStyle.columns(of: $0.label) }.max() ?? 0
    let cells = min(48, room - names - 16)
    guard cells >= 8 else { return [] }
    return levels.map { label, level in
      let bar = LevelBar.draw(rms: level.rms, peak: level.peak, cells: cells, style: style)
      let figure = TerminalStyle.padded(before: Figures.fixed(level.rms, decimals: 0), to: 4)
      return "  \(TerminalStyle.padded(label, to: names)) \(bar) \(figure) dBFS"
    }
  }

  /// What keys there are, and what may be typed.
  static func keys(_ parts: TalkParts) -> [String] {
    var keys: [String] = []
    switch parts.mode {
    case .duplex: break
    case .pushToTalk: keys.append("space: press to talk, press again to send (or hold it)")
    case .tapToTalk: keys.append("enter: tap, then speak; again to send")
    }
    keys += ["i: interrupt", "q: leave"]
    let lines = parts.showsPictures ? "/image FILE  /say TEXT  /mute  /help" : "/say TEXT  /mute  /help"
    return [keys.joined(separator: " · "), "type to ask (tab before i, q) · \(lines)"]
  }

  /// The end of a text, where it is being written.
  static func tail(_ text: String, to columns: Int) -> String {
    var (kept, used) = ([Character](), 0)
    for character in text.reversed() {
      used += TerminalStyle.columns(of: String(character))
      if used > columns { break }
      kept.append(character)
    }
    return String(kept.reversed())
  }
}
