public import MillraceJSON

/// A report of playback to the service: how much of a reply was heard. Corresponds to the events of `audio.play`.
public enum PlaybackReport: Sendable, Hashable {
  /// The first sample of a reply was played.
  case audible(reply: Int)
  /// An utterance of a reply was played to its end.
  case finished(reply: Int, samples: Int, milliseconds: Int)
  /// A reply was cut off after this much was heard. `reply` 0: none was audible.
  case cut(reply: Int, samples: Int, milliseconds: Int)
}

/// What arrives at a service's `control` port: commands, and reports of what is heard and seen, linked directly or through `dialog.turn`.
public enum DialogControl: Sendable, Hashable {
  /// A command, and the `id` under which it is to be answered, if it has one.
  case command(DialogCommand, id: String? = nil)
  /// A playback report.
  case playback(PlaybackReport)
  /// The first picture of a stream is shown: the event `firstPicture` of `rtmp.pull`.
  case firstPicture

  /// Reads a packet of the port. Nil for an event of playback that does not concern a reply (`late`, `underrun`).
  public static func read(_ json: JSONValue) throws(JSONFormProblem) -> DialogControl? {
    guard let name = json["event"]?.string else {
      return .command(try DialogCommand(json: json), id: try commandID(json))
    }
    let form = JSONForm(json, at: name)
    switch name {
    case "replyAudible": return .playback(.audible(reply: try form.integer("reply")))
    case "replyFinished":
      return .playback(
        .finished(
          reply: try form.integer("reply"), samples: try form.integer("samples"),
          milliseconds: milliseconds(json)))
    case "firstPicture": return .firstPicture
    case "interrupted":
      return .playback(
        .cut(
          reply: try form.integer("reply"), samples: try form.integer("samples"),
          milliseconds: milliseconds(json)))
    default: return nil
    }
  }

  /// The most bytes an id may have: it is repeated in the answer, which has to fit into an event.
  public static let mostIDBytes = 128

  /// The valid `id` of a command, also of one that is invalid otherwise.
  public static func id(of json: JSONValue) -> String? {
    guard json["event"]?.string == nil else { return nil }
    do throws(JSONFormProblem) { return try commandID(json) } catch { return nil }
  }

  private static func commandID(_ json: JSONValue) throws(JSONFormProblem) -> String? {
    guard let value = json["id"], !value.isNull else { return nil }
    guard let id = value.string ?? value.integer.map(String.init), !id.isEmpty, id.utf8.count <= mostIDBytes
    else { throw JSONFormProblem("id", "must be a string of 1 to \(mostIDBytes) bytes, or an integer") }
    return id
  }

  /// Playback reports fractional milliseconds.
  private static func milliseconds(_ json: JSONValue) -> Int {
    json["ms"]?.double.flatMap { Int(exactly: $0.rounded(.down)) } ?? 0
  }
}
