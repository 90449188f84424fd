internal import MillraceDialog
internal import MillraceJSON

extension TuyaText.Reply {
  /// What a program learns of it.
  func events(isFinal: Bool, round: String?) -> [DialogEvent] {
    var events: [DialogEvent] = []
    if !reasoning.isEmpty {
      let payload = JSONValue.object(["text": .string(reasoning), "round": round.map { .string($0) }])
      events.append(.extra(name: "reasoning", payload: payload))
    }
    // The last part may be empty.
    if !text.isEmpty || isFinal {
      events.append(
        .reply(
          DialogReply(
            text: text, isFinal: isFinal, mode: isAppended || text.isEmpty ? .append : .replace, round: round)
        ))
    }
    events += images.map { .media(DialogMedia(.image, url: $0, round: round)) }
    return events
  }
}

/// Skills that a program carries out.
enum TuyaSkill {
  /// What a program learns of a skill: the command as it came, and the pieces of `music` as things to play.
  static func events(_ code: String, _ data: JSONValue, round: String?) -> [DialogEvent] {
    var events: [DialogEvent] = [.command(name: code, payload: data, round: round)]
    guard code == "music" else { return events }
    let general = data["general"] ?? data["skillContent"]?["general"]
    for piece in general?["data"]?["audios"]?.array ?? [] {
      guard let url = piece["url"]?.string, !url.isEmpty else { continue }
      events.append(
        .media(
          DialogMedia(
            .audio, url: url, name: piece["name"]?.string, title: piece["artist"]?.string, detail: piece,
            round: round)))
    }
    return events
  }
}
