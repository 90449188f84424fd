internal import MillraceJSON

/// What happened to another peer: the push `peer`.
public struct RoomPeerChange: Sendable, Hashable {
  /// What happened.
  public enum Kind: Sendable, Hashable {
    /// It is in the room from now on; it no longer is.
    case joined, left(RoomLeaveReason)
    /// It has another role; it publishes other tracks, or is muted or no longer.
    case role, tracks
  }

  /// What happened.
  public var kind: Kind
  /// The peer, as it is from now on; one that has left: as it was.
  public var member: RoomMember

  /// Creates a change of a peer.
  public init(_ kind: Kind, _ member: RoomMember) {
    self.kind = kind
    self.member = member
  }
}

extension RoomPeerChange {
  /// The names on the wire.
  private enum Word: String, CaseIterable { case joined, left, role, tracks }

  var json: JSONValue {
    let word: Word
    var reason: [JSONValue.Member] = []
    switch kind {
    case .joined: word = .joined
    case .left(let why):
      word = .left
      reason = [.init("reason", .string(why.rawValue))]
    case .role: word = .role
    case .tracks: word = .tracks
    }
    return .object([JSONValue.Member("change", .string(word.rawValue))] + member.members + reason)
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let word: Word = try form.word("change")
    let kind: Kind
    switch word {
    case .joined: kind = .joined
    case .left: kind = .left(try form.word("reason"))
    case .role: kind = .role
    case .tracks: kind = .tracks
    }
    self.init(kind, try RoomMember(form))
  }
}

/// Which peer's packets a medium of the session carries from now on: the push `slot`.
public struct RoomSlot: Sendable, Hashable {
  /// The medium, by its `mid` in the description of this member.
  public var mid: String
  /// What it carries.
  public var track: RoomTrack
  /// Whose; nil: nobody's.
  public var peer: RoomName?

  /// Creates an assignment.
  public init(_ mid: String, _ track: RoomTrack, peer: RoomName? = nil) {
    self.mid = mid
    self.track = track
    self.peer = peer
  }
}

extension RoomSlot {
  var json: JSONValue {
    .object([
      "mid": .string(mid), "track": .string(track.rawValue), "peer": peer.map { .string($0.rawValue) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(try form.label("mid"), try form.word("track"), peer: try form.optionalName("peer"))
  }
}

/// How loud a peer is: an entry of the push `speaking`.
public struct RoomLevel: Sendable, Hashable {
  /// The peer.
  public let peer: RoomName
  /// In dBov (RFC 6464): 0 is the loudest, -127 is silence.
  public let level: Int

  /// Creates a level; one outside the scale is limited to it.
  public init(_ peer: RoomName, _ level: Int) {
    self.peer = peer
    self.level = min(max(level, RoomLimits.levels.lowerBound), RoomLimits.levels.upperBound)
  }
}

extension RoomLevel {
  var json: JSONValue { ["peer": .string(peer.rawValue), "level": .integer(level)] }

  static func list(_ form: JSONForm, _ member: String) throws(JSONFormProblem) -> [RoomLevel] {
    var result: [RoomLevel] = []
    for entry in try form.array(member) {
      result.append(RoomLevel(try entry.name("peer"), try entry.integer("level", in: RoomLimits.levels)))
    }
    return result
  }
}
