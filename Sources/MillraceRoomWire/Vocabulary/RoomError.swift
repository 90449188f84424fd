public import MillraceJSON

/// The names of errors, as they are on the wire.
public enum RoomErrorName: String, Sendable, Hashable, CaseIterable {
  /// Not JSON, no object, no `id`, no `op`.
  case badMessage
  /// The id is not larger than the one before; nothing was done.
  case repeatedID = "repeatedId"
  /// This hub does not know the operation.
  case unknownOp
  /// A member of the payload is missing or wrong; the text names it.
  case badPayload
  /// Not version 1.
  case unknownVersion
  /// Before `login`; `login` as another user.
  case notLoggedIn, loggedIn
  /// Outside a room; in a room already.
  case notInRoom, inRoom
  /// The token is wrong, or another user's or room's.
  case badToken
  /// Its time is over; it lets in once, and did.
  case tokenExpired, tokenUsed
  /// The user is in this room, and the hub keeps the first.
  case duplicate
  /// The role or the rights do not allow it.
  case forbidden
  /// No such peer, user or call.
  case notFound
  /// A limit of the hub; the last with `afterMilliseconds`.
  case roomFull, tooManyRooms, tooManyRequests
  /// The description cannot be used.
  case badOffer, noCommonCodec
  /// This hub only carries messages.
  case noMedia
  /// The hub stops.
  case closing
}

/// Why a hub did not do what a request asks.
public struct RoomError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What a program decides by.
  public var name: RoomErrorName
  /// For people. Names members, never their content.
  public var text: String
  /// When it makes sense to try again; nil: not by waiting.
  public var afterMilliseconds: Int?

  /// Creates an error.
  public init(_ name: RoomErrorName, _ text: String, afterMilliseconds: Int? = nil) {
    self.name = name
    self.text = text
    self.afterMilliseconds = afterMilliseconds
  }

  /// For example `notFound: no peer has this id`.
  public var description: String { "\(name.rawValue): \(text)" }
}

extension RoomError {
  /// The object of an answer, or the payload of the push `error`.
  public var json: JSONValue {
    .object([
      "name": .string(name.rawValue), "text": .string(text),
      "afterMs": afterMilliseconds.map { .integer($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try form.word("name"), try form.text("text"),
      afterMilliseconds: try form.optionalInteger("afterMs", in: RoomLimits.milliseconds))
  }
}

/// Why bytes are no message of the wire. Names members, never their content, which may be what a user said.
public struct RoomReadProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// Of requests: `badMessage`, `unknownOp`, `badPayload` or `unknownVersion`. Of answers and pushes: `badMessage` or `badPayload`.
  public var name: RoomErrorName
  /// What is wrong, such as `"payload.user" must be a string`.
  public var text: String
  /// The id of the request or the answer, if it could be read. With it a hub answers; without it it pushes `error`.
  public var id: Int?

  /// Creates a problem.
  public init(_ name: RoomErrorName, _ text: String, id: Int? = nil) {
    self.name = name
    self.text = text
    self.id = id
  }

  /// The problem of a member of the payload.
  init(_ problem: JSONFormProblem, id: Int? = nil) { self.init(.badPayload, problem.description, id: id) }

  /// What the hub says about it.
  public var error: RoomError { RoomError(name, text) }

  /// For example `badPayload: "payload.user" must be a string`.
  public var description: String { "\(name.rawValue): \(text)" }
}
