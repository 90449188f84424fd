public import MillraceJSON

/// The answer to `login`. The version is always `RoomWire.version`.
public struct RoomLoggedIn: RoomPayload {
  /// Who is logged in.
  public var user: RoomName
  /// How long the token lasts from now on; nil: no token.
  public var expiresInMilliseconds: Int?

  /// Creates an answer.
  public init(_ user: RoomName, expiresInMilliseconds: Int? = nil) {
    self.user = user
    self.expiresInMilliseconds = expiresInMilliseconds
  }

  public init(_ form: JSONForm) throws(JSONFormProblem) {
    try form.checkVersion()
    self.init(
      try form.name("user"),
      expiresInMilliseconds: try form.optionalInteger("expiresMs", in: RoomLimits.milliseconds))
  }

  public var json: JSONValue {
    .object([
      "version": .integer(RoomWire.version), "user": .string(user.rawValue),
      "expiresMs": expiresInMilliseconds.map { .integer($0) },
    ])
  }
}

/// The answer to `join`: who this member is in the room, and who else is there.
public struct RoomJoined: RoomPayload {
  /// The id of this member in the room.
  public var peer: RoomName
  /// The room.
  public var room: RoomName
  /// What this member is there.
  public var role: RoomRole
  /// What it may do there.
  public var rights: Set<RoomRight>
  /// The others.
  public var peers: [RoomMember]
  /// How media are distributed; nil: this hub only carries messages.
  public var media: RoomMediaMode?
  /// STUN and TURN servers.
  public var servers: [RoomServer]

  /// Creates an answer.
  public init(
    _ peer: RoomName, room: RoomName, role: RoomRole, rights: Set<RoomRight>, peers: [RoomMember] = [],
    media: RoomMediaMode? = nil, servers: [RoomServer] = []
  ) {
    self.peer = peer
    self.room = room
    self.role = role
    self.rights = rights
    self.peers = peers
    self.media = media
    self.servers = servers
  }

  public init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.name("peer"), room: try form.name("room"), role: try form.word("role"),
      rights: try form.words("rights"), peers: try RoomMember.list(form, "peers"),
      media: try form.optionalWord("media"), servers: try RoomServer.list(form, "servers"))
  }

  public var json: JSONValue {
    .object([
      "peer": .string(peer.rawValue), "room": .string(room.rawValue), "role": .string(role.rawValue),
      "rights": .words(rights), "peers": .array(peers.map { .object($0.members) }),
      "media": media.map { .string($0.rawValue) }, "servers": .array(servers.map(\.json)),
    ])
  }
}

/// The answer to `role`.
public struct RoomRoleChanged: RoomPayload {
  /// What this member is from now on.
  public var role: RoomRole

  /// Creates an answer.
  public init(_ role: RoomRole) { self.role = role }

  public init(_ form: JSONForm) throws(JSONFormProblem) { self.init(try form.word("role")) }

  public var json: JSONValue { ["role": .string(role.rawValue)] }
}

/// The answer to `call`.
public struct RoomCalling: RoomPayload {
  /// The id of the call, given by the hub.
  public var call: RoomName

  /// Creates an answer.
  public init(_ call: RoomName) { self.call = call }

  public init(_ form: JSONForm) throws(JSONFormProblem) { self.init(try form.name("call")) }

  public var json: JSONValue { ["call": .string(call.rawValue)] }
}
