internal import MillraceDialog
internal import MillraceJSON

extension IVHPush.Speech {
  /// What a program learns of it, besides its gates.
  func events(_ round: String?) -> [DialogEvent] {
    var events: [DialogEvent] = []
    let shown = display ?? text ?? ""
    // The last of several parts may be empty.
    if !shown.isEmpty || isPart && isFinal {
      var part = DialogReply(text: shown, isFinal: isFinal, mode: .append, round: round)
      if let text, text != shown { part.spoken = text }
      events.append(.reply(part))
    }
    if let withMarks, !withMarks.isEmpty, withMarks != text {
      let payload: JSONValue = .object(["text": .string(withMarks), "round": round.json])
      events.append(.extra(name: "TextPro", payload: payload))
    }
    if let media { events.append(.media(media)) }
    events += rest.map { .extra(name: $0.name, payload: $0.value) }
    if isScriptOver { events.append(.extra(name: "ChatStatus", payload: 4)) }
    return events
  }
}
