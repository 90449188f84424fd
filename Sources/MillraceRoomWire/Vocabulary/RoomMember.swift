internal import MillraceJSON

/// A peer of a room, as the others see it: an entry of `peers`, and the content of the push `peer`.
public struct RoomMember: Sendable, Hashable {
  /// The peer's id, given by the hub.
  public var peer: RoomName
  /// The user whose presence it is.
  public var user: RoomName
  /// The display name: at most 64 characters of any content. Shown as text, never as markup.
  public var name: String
  /// Its role.
  public var role: RoomRole
  /// What it publishes.
  public var tracks: Set<RoomTrack>
  /// True while its sound is withheld.
  public var isMuted: Bool

  /// Creates a peer.
  public init(
    _ peer: RoomName, user: RoomName, name: String, role: RoomRole, tracks: Set<RoomTrack> = [],
    isMuted: Bool = false
  ) {
    self.peer = peer
    self.user = user
    self.name = name
    self.role = role
    self.tracks = tracks
    self.isMuted = isMuted
  }
}

extension RoomMember {
  var members: [JSONValue.Member] {
    [
      .init("peer", .string(peer.rawValue)), .init("user", .string(user.rawValue)),
      .init("name", .string(name)), .init("role", .string(role.rawValue)),
      .init("tracks", .words(tracks)), .init("muted", .bool(isMuted)),
    ]
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.name("peer"), user: try form.name("user"), name: try form.displayName("name"),
      role: try form.word("role"), tracks: try form.words("tracks"), isMuted: try form.bool("muted"))
  }

  static func list(_ form: JSONForm, _ member: String) throws(JSONFormProblem) -> [RoomMember] {
    var result: [RoomMember] = []
    for entry in try form.array(member) { result.append(try RoomMember(entry)) }
    return result
  }
}

/// A STUN or TURN server that a hub names to its members.
public struct RoomServer: Sendable, Hashable {
  /// `stun:`, `turn:` or `turns:` (RFC 7064, RFC 7065).
  public var url: String
  /// The user of a TURN server.
  public var user: String?
  /// The password of a TURN server, a secret.
  public var password: String?

  /// Creates a server.
  public init(_ url: String, user: String? = nil, password: String? = nil) {
    self.url = url
    self.user = user
    self.password = password
  }
}

extension RoomServer: CustomStringConvertible {
  /// The address; the rest is secret.
  public var description: String { url }
}

extension RoomServer {
  var json: JSONValue {
    .object([
      "url": .string(url), "user": user.map { .string($0) }, "password": password.map { .string($0) },
    ])
  }

  static func list(_ form: JSONForm, _ member: String) throws(JSONFormProblem) -> [RoomServer] {
    var result: [RoomServer] = []
    for entry in try form.array(member) {
      result.append(
        RoomServer(
          try entry.string("url"), user: try entry.optionalString("user"),
          password: try entry.optionalString("password")))
    }
    return result
  }
}
