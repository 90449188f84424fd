/// What playback has to tell a service: how much of a reply was really heard. The events of `audio.play`, as they are.
public enum PlaybackReport: Sendable, Hashable {
  /// The first sample of a reply was played.
  case audible(reply: Int)
  /// An utterance of a reply was played to its end.
  case finished(reply: Int, samples: Int, milliseconds: Int)
  /// A reply was cut off, with so much of it heard. `reply` 0: none was audible.
  case cut(reply: Int, samples: Int, milliseconds: Int)
}

/// What arrives at a service's port `control`: commands, and the reports of playback, linked straight or through `dialog.turn`.
public enum DialogControl: Sendable, Hashable {
  /// The service is to do something.
  case command(DialogCommand)
  /// What was heard.
  case playback(PlaybackReport)

  /// Reads one packet of the port. nil for an event of playback that concerns no reply (`late`, `underrun`).
  public static func read(_ json: JSONValue) throws(DialogFormProblem) -> DialogControl? {
    guard let name = json["event"]?.string else { return .command(try DialogCommand(json: json)) }
    let form = DialogForm(json, of: name)
    switch name {
    case "replyAudible": return .playback(.audible(reply: try form.integer("reply")))
    case "replyFinished":
      return .playback(
        .finished(
          reply: try form.integer("reply"), samples: try form.integer("samples"),
          milliseconds: milliseconds(json)))
    case "interrupted":
      return .playback(
        .cut(
          reply: try form.integer("reply"), samples: try form.integer("samples"),
          milliseconds: milliseconds(json)))
    default: return nil
    }
  }

  /// Playback counts milliseconds with decimals.
  private static func milliseconds(_ json: JSONValue) -> Int {
    json["ms"]?.double.flatMap { Int(exactly: $0.rounded(.down)) } ?? 0
  }
}
