internal import MillraceJSON

/// What a user logs in with. The version is always `RoomWire.version`.
public struct RoomLogin: Sendable, Hashable {
  /// Who logs in.
  public var user: RoomName
  /// The display name; nil: the user's name is shown.
  public var name: String?
  /// What lets the user in, a secret; nil: for a hub without a key.
  public var token: String?

  /// Creates a login.
  public init(_ user: RoomName, name: String? = nil, token: String? = nil) {
    self.user = user
    self.name = name
    self.token = token
  }
}

extension RoomLogin: CustomStringConvertible {
  /// The user; the token is secret.
  public var description: String { "login of \(user)" }
}

extension RoomLogin {
  var json: JSONValue {
    .object([
      "version": .integer(RoomWire.version), "user": .string(user.rawValue),
      "name": name.map { .string($0) }, "token": token.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    try form.checkVersion()
    self.init(
      try form.name("user"), name: try form.optionalDisplayName("name"),
      token: try form.optionalToken("token"))
  }
}

extension JSONForm {
  /// The answer `unknownVersion` is for `RoomRequest`: a member has no such error.
  func checkVersion() throws(JSONFormProblem) {
    guard try integer("version") == RoomWire.version else {
      throw problem("version", "must be \(RoomWire.version)")
    }
  }
}

/// Which room a member joins.
public struct RoomJoin: Sendable, Hashable {
  /// The room. Its first member makes it.
  public var room: RoomName
  /// What the member wants to be there; nil: the highest role it may have.
  public var role: RoomRole?
  /// What lets the user into this room, a secret; nil: the token of `login`.
  public var token: String?

  /// Creates a join.
  public init(_ room: RoomName, role: RoomRole? = nil, token: String? = nil) {
    self.room = room
    self.role = role
    self.token = token
  }
}

extension RoomJoin: CustomStringConvertible {
  /// The room; the token is secret.
  public var description: String { "join of \(room)" }
}

extension RoomJoin {
  var json: JSONValue {
    .object([
      "room": .string(room.rawValue), "role": role.map { .string($0.rawValue) },
      "token": token.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.name("room"), role: try form.optionalWord("role"), token: try form.optionalToken("token"))
  }
}

/// Which track a member publishes, or no longer.
public struct RoomPublication: Sendable, Hashable {
  /// The track.
  public var track: RoomTrack
  /// True: publishes it.
  public var isOn: Bool
  /// What a video shows; nil: not said.
  public var source: RoomVideoSource?

  /// Creates a publication.
  public init(_ track: RoomTrack, isOn: Bool, source: RoomVideoSource? = nil) {
    self.track = track
    self.isOn = isOn
    self.source = source
  }
}

extension RoomPublication {
  var json: JSONValue {
    .object([
      "track": .string(track.rawValue), "on": .bool(isOn), "source": source.map { .string($0.rawValue) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.word("track"), isOn: try form.bool("on"), source: try form.optionalWord("source"))
  }
}

/// Which track a member receives, and of whom, or no longer.
public struct RoomSubscription: Sendable, Hashable {
  /// The track.
  public var track: RoomTrack
  /// True: receives it.
  public var isOn: Bool
  /// Of this peer; nil: of all, and of those who will join.
  public var peer: RoomName?

  /// Creates a subscription.
  public init(_ track: RoomTrack, isOn: Bool, peer: RoomName? = nil) {
    self.track = track
    self.isOn = isOn
    self.peer = peer
  }
}

extension RoomSubscription {
  var json: JSONValue {
    .object([
      "track": .string(track.rawValue), "on": .bool(isOn), "peer": peer.map { .string($0.rawValue) },
      "all": peer == nil ? true : nil,
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let peer = try form.optionalName("peer")
    let isOfAll = form["all"] == nil ? false : try form.bool("all")
    guard isOfAll == (peer == nil) else {
      throw JSONFormProblem(form.path, "must have a \"peer\" or \"all\": true, and not both")
    }
    self.init(try form.word("track"), isOn: try form.bool("on"), peer: peer)
  }
}
