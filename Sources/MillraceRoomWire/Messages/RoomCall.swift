internal import MillraceJSON

/// A call to a user who is logged in.
public struct RoomCallRequest: Sendable, Hashable {
  /// The user to call.
  public var user: RoomName
  /// What the call is to carry; empty: not said.
  public var media: Set<RoomTrack>
  /// What the other end receives with the call.
  public var text: String?

  /// Creates a call.
  public init(to user: RoomName, media: Set<RoomTrack> = [], text: String? = nil) {
    self.user = user
    self.media = media
    self.text = text
  }
}

extension RoomCallRequest {
  var json: JSONValue {
    .object([
      "to": .string(user.rawValue), "media": media.isEmpty ? nil : .words(media),
      "text": text.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      to: try form.name("to"), media: try form.optionalTracks("media"), text: try form.optionalText("text"))
  }
}

extension JSONForm {
  fileprivate func optionalTracks(_ member: String) throws(JSONFormProblem) -> Set<RoomTrack> {
    guard self[member] != nil else { return [] }
    return try words(member)
  }
}

/// The answer to an incoming call.
public struct RoomCallAnswer: Sendable, Hashable {
  /// The id of the call.
  public var call: RoomName
  /// True: accepts it; false: rejects it.
  public var isAccepted: Bool
  /// What the caller receives with the answer.
  public var text: String?

  /// Creates an answer.
  public init(_ call: RoomName, isAccepted: Bool, text: String? = nil) {
    self.call = call
    self.isAccepted = isAccepted
    self.text = text
  }
}

extension RoomCallAnswer {
  var json: JSONValue {
    .object([
      "call": .string(call.rawValue), "accept": .bool(isAccepted), "text": text.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.name("call"), isAccepted: try form.bool("accept"), text: try form.optionalText("text"))
  }
}

/// What happened to a call: the push `call`.
public struct RoomCallChange: Sendable, Hashable {
  /// What happened.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Somebody calls this user; the other end has received this user's call.
    case incoming, ringing
    /// The other end has accepted it, has rejected it, or is in another call.
    case accepted, rejected, busy
    /// It has ended.
    case ended
  }

  /// The id of the call, given by the hub.
  public var call: RoomName
  /// What happened.
  public var kind: Kind
  /// The other end.
  public var user: RoomName?
  /// The display name of the other end.
  public var name: String?
  /// What the call is to carry; empty: not said.
  public var media: Set<RoomTrack>
  /// What the other end sent along.
  public var text: String?
  /// Why it was rejected or has ended.
  public var reason: String?
  /// The room that both join; always there with `accepted`.
  public var room: RoomName?

  /// Creates a change of a call.
  public init(
    _ call: RoomName, _ kind: Kind, user: RoomName? = nil, name: String? = nil, media: Set<RoomTrack> = [],
    text: String? = nil, reason: String? = nil, room: RoomName? = nil
  ) {
    self.call = call
    self.kind = kind
    self.user = user
    self.name = name
    self.media = media
    self.text = text
    self.reason = reason
    self.room = room
  }
}

extension RoomCallChange {
  var json: JSONValue {
    .object([
      "call": .string(call.rawValue), "change": .string(kind.rawValue),
      "user": user.map { .string($0.rawValue) }, "name": name.map { .string($0) },
      "media": media.isEmpty ? nil : .words(media), "text": text.map { .string($0) },
      "reason": reason.map { .string($0) }, "room": room.map { .string($0.rawValue) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let kind: Kind = try form.word("change")
    let room: RoomName? = kind == .accepted ? try form.name("room") : try form.optionalName("room")
    self.init(
      try form.name("call"), kind, user: try form.optionalName("user"),
      name: try form.optionalDisplayName("name"), media: try form.optionalTracks("media"),
      text: try form.optionalText("text"), reason: try form.optionalText("reason"), room: room)
  }
}
