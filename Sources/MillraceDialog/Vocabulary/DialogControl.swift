/// A report of playback to the service: how much of a reply was heard. Corresponds to the events of `audio.play`.
public enum PlaybackReport: Sendable, Hashable {
  /// The first sample of a reply was played.
  case audible(reply: Int)
  /// An utterance of a reply was played to its end.
  case finished(reply: Int, samples: Int, milliseconds: Int)
  /// A reply was cut off after this much was heard. `reply` 0: none was audible.
  case cut(reply: Int, samples: Int, milliseconds: Int)
}

/// What arrives at a service's `control` port: commands, and playback reports, linked directly or through `dialog.turn`.
public enum DialogControl: Sendable, Hashable {
  /// A command.
  case command(DialogCommand)
  /// A playback report.
  case playback(PlaybackReport)

  /// Reads a packet of the port. Nil for an event of playback that does not concern a reply (`late`, `underrun`).
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

  /// Playback reports fractional milliseconds.
  private static func milliseconds(_ json: JSONValue) -> Int {
    json["ms"]?.double.flatMap { Int(exactly: $0.rounded(.down)) } ?? 0
  }
}
