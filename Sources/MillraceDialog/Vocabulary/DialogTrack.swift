internal import MillraceJSON

/// A kind of content that a participant sends.
public enum DialogTrack: String, Sendable, Hashable, CaseIterable {
  /// Audio; video, of a camera where the vendor distinguishes.
  case audio, video
  /// A screen; messages and bytes beside audio and video.
  case screen, data
}

/// What happened to a track of this client.
public enum DialogTrackChange: String, Sendable, Hashable, CaseIterable {
  /// Its source works; nothing is sent yet.
  case ready
  /// Published: others can subscribe to it.
  case published
  /// The first packet of it was sent.
  case sending
  /// No longer published.
  case unpublished
}

extension DialogTrack {
  /// The tracks named by a member; nil when it is missing.
  static func list(_ form: JSONForm, _ member: String) throws(JSONFormProblem) -> [DialogTrack]? {
    guard form[member] != nil else { return nil }
    var result: [DialogTrack] = []
    for entry in try form.array(member) {
      guard let track = entry.json.string.flatMap(DialogTrack.init(rawValue:)) else {
        let words = allCases.map(\.rawValue).joined(separator: ", ")
        throw JSONFormProblem(entry.path, "must be one of \(words)")
      }
      result.append(track)
    }
    return result
  }

  static func json(_ tracks: [DialogTrack]) -> JSONValue { .array(tracks.map { .string($0.rawValue) }) }
}
