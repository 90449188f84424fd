internal import MillraceJSON

/// Another participant in the room or at the other end of a call.
public struct DialogPeer: Sendable, Hashable {
  /// What changed.
  public enum Change: String, Sendable, Hashable, CaseIterable {
    /// Joined or left.
    case joined, left
    /// Which tracks the participant publishes: see `sendsAudio`, `sendsVideo` and `sendsScreen`.
    case tracks
    /// Muted or unmuted a track that remains published: the same members say what is sent now.
    case muted
  }

  /// The vendor's id of the participant.
  public var id: String
  /// What changed.
  public var change: Change
  /// The name to display.
  public var name: String?
  /// True: sends audio; nil: unknown.
  public var sendsAudio: Bool?
  /// True: sends video, of a camera where the vendor distinguishes; nil: unknown.
  public var sendsVideo: Bool?
  /// True: sends a screen; nil: unknown, or the vendor does not distinguish it from video.
  public var sendsScreen: Bool?
  /// How long the participant has been in the room, or what the vendor measured up to this event, in milliseconds.
  public var elapsedMilliseconds: Int?
  /// Why the participant left, in the vendor's words.
  public var reason: String?

  /// Creates a change of a participant.
  public init(
    _ id: String, _ change: Change, name: String? = nil, sendsAudio: Bool? = nil, sendsVideo: Bool? = nil,
    sendsScreen: Bool? = nil, elapsedMilliseconds: Int? = nil, reason: String? = nil
  ) {
    self.id = id
    self.change = change
    self.name = name
    self.sendsAudio = sendsAudio
    self.sendsVideo = sendsVideo
    self.sendsScreen = sendsScreen
    self.elapsedMilliseconds = elapsedMilliseconds
    self.reason = reason
  }
}

extension DialogPeer {
  var json: JSONValue {
    .object([
      "id": .string(id), "change": .string(change.rawValue), "name": name.map { .string($0) },
      "audio": sendsAudio.map { .bool($0) }, "video": sendsVideo.map { .bool($0) },
      "screen": sendsScreen.map { .bool($0) }, "elapsedMs": elapsedMilliseconds.map { .integer($0) },
      "reason": reason.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.string("id"), try form.word("change"), name: json["name"]?.string,
      sendsAudio: json["audio"]?.bool, sendsVideo: json["video"]?.bool, sendsScreen: json["screen"]?.bool,
      elapsedMilliseconds: json["elapsedMs"]?.integer, reason: json["reason"]?.string)
  }
}

/// Which participants a command concerns.
public enum DialogPeers: Sendable, Hashable {
  /// Everybody who is in the room.
  case all
  /// Everybody who joins from now on.
  case new
  /// One participant, by the vendor's id.
  case one(String)
}

extension DialogPeers {
  /// The member of a command: `"peer":"7"`, `"peers":"all"` or `"peers":"new"`.
  var member: JSONValue.Member {
    switch self {
    case .all: JSONValue.Member("peers", "all")
    case .new: JSONValue.Member("peers", "new")
    case .one(let id): JSONValue.Member("peer", .string(id))
    }
  }

  /// Without either member it is `all`.
  init(_ form: JSONForm) throws(JSONFormProblem) {
    if form["peer"] != nil {
      self = .one(try form.string("peer"))
      return
    }
    switch form["peers"]?.string {
    case nil where form["peers"] == nil: self = .all
    case "all": self = .all
    case "new": self = .new
    default: throw form.problem("peers", "must be all or new; one participant is named by \"peer\"")
    }
  }
}
