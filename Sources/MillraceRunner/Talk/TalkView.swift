internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph

/// Formats the dialogue: lines that are printed once, and the panel at the bottom that is redrawn. Pure.
struct TalkView {
  let style: TerminalStyle

  // MARK: Printed lines

  /// One line of the dialogue, wrapped to the width of the window.
  func text(of line: TalkModel.Line) -> [String] {
    switch line {
    case .user(let text): spoken("you", text, .bold)
    case .bot(let text, let isInterrupted):
      spoken("bot", isInterrupted ? text + " …" : text, .heading)
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

  // MARK: Panel

  /// What the panel shows in addition to the model.
  struct Status {
    var title: String
    var time: Nanoseconds
    var levels: [(label: String, level: EventMonitor.Level)] = []
    var waterfall: Waterfall?
    var typed: String?
    var isPressed = false
    var isLeaving = false
  }

  func panel(_ model: TalkModel, _ status: Status) -> [String] {
    let room = style.width - 1
    var lines: [String] = []
    if !model.partialTranscript.isEmpty {
      lines.append(TerminalStyle.cut("you  \(model.partialTranscript)", to: room))
    }
    if !model.partialReply.isEmpty { lines.append(TerminalStyle.cut("bot  \(model.partialReply)", to: room)) }
    lines.append(style.paint(TerminalStyle.cut(head(model, status), to: room), .bold))
    lines += meters(status.levels, room)
    if let waterfall = status.waterfall {
      if room >= 60 { lines.append("  " + waterfall.bar(cells: min(60, room - 4), style: style)) }
      lines.append(style.paint(TerminalStyle.cut("  " + waterfall.text, to: room), .dim))
    }
    for keys in Self.keyLines(model.nodes) {
      lines.append(style.paint(TerminalStyle.cut(keys, to: room), .dim))
    }
    if let typed = status.typed { lines.append("> " + Self.tail(typed, to: room - 3) + "▏") }
    return lines
  }

  private func head(_ model: TalkModel, _ status: Status) -> String {
    let seconds = Int(status.time / 1_000_000_000)
    let clock = "\(seconds / 60):\(seconds % 60 < 10 ? "0" : "")\(seconds % 60)"
    var parts = [status.title, clock, status.isLeaving ? "closing" : Self.stateText(model)]
    if status.isPressed { parts.append("button pressed") }
    if model.isMuted { parts.append("muted") }
    return parts.joined(separator: "  ")
  }

  /// The state of the turn as text.
  static func stateText(_ model: TalkModel) -> String {
    switch model.state {
    case .idle, .connecting: "connecting"
    case .listening:
      switch model.nodes.mode {
      case .duplex: "listening: just speak"
      case .pushToTalk: "your turn: press space"
      case .tapToTalk: "your turn: press Enter, then speak"
      }
    case .hearing: "hearing you"
    case .thinking: "thinking"
    case .responding, .draining: "answering"
    case .suspecting: "paused: are you speaking?"
    case .yielding: "stopping for you"
    case .reconnecting: "reconnecting"
    case .closing: "closing"
    case .closed: "closed"
    }
  }

  private func meters(_ levels: [(label: String, level: EventMonitor.Level)], _ room: Int) -> [String] {
    let names = levels.map { TerminalStyle.columns(of: $0.label) }.max() ?? 0
    let cells = min(48, room - names - 16)
    guard cells >= 8 else { return [] }
    return levels.map { label, level in
      let bar = LevelBar.draw(rms: level.rms, peak: level.peak, cells: cells, style: style)
      let figure = TerminalStyle.padded(before: Figures.fixed(level.rms, decimals: 0), to: 4)
      return "  \(TerminalStyle.padded(label, to: names)) \(bar) \(figure) dBFS"
    }
  }

  /// Lines that explain the keys and commands.
  static func keyLines(_ nodes: TalkNodes) -> [String] {
    var keys: [String] = []
    switch nodes.mode {
    case .duplex: break
    case .pushToTalk: keys.append("space: press to talk, press again to send (or hold it)")
    case .tapToTalk: keys.append("Enter: press, then speak; press again to send")
    }
    keys += ["i: interrupt", "q: quit"]
    let commands = nodes.acceptsPictures ? "/image FILE  /say TEXT  /mute  /help" : "/say TEXT  /mute  /help"
    return [keys.joined(separator: " · "), "type to ask (Tab before i, q) · \(commands)"]
  }

  /// The end of a text, which is being typed.
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
