public import MillraceJSON

/// What a member asks of the hub: `op` and `payload` of a request, Documentation/room.md, section "Requests".
///
/// `to` is a peer of the room; without it all others are meant, or the hub itself for `sdp` and `candidate`.
public enum RoomOperation: Sendable, Hashable {
  /// Names the user, first of all; again, with a new token.
  case login(RoomLogin)
  /// Leaves the room, and forgets the user.
  case logout
  /// Joins a room.
  case join(RoomJoin)
  /// Leaves the room.
  case leave
  /// Changes the own role.
  case role(RoomRole)
  /// Publishes a track, or no longer.
  case publish(RoomPublication)
  /// Receives a track, or no longer.
  case subscribe(RoomSubscription)
  /// A description.
  case sdp(RoomDescription, to: RoomName? = nil)
  /// A candidate, or that no more follow.
  case candidate(RoomCandidate, to: RoomName? = nil)
  /// Removes a peer.
  case kick(RoomName, text: String? = nil)
  /// Ends the room for everybody.
  case close(text: String? = nil)
  /// Calls a user.
  case call(RoomCallRequest)
  /// Accepts or rejects a call.
  case answerCall(RoomCallAnswer)
  /// Ends a call.
  case hangUp(call: RoomName, reason: String? = nil)
  /// A command of the dialog vocabulary to a peer, such as a bot: an object with a string `command`, of at most `RoomLimits.contentBytes`.
  /// Its other members are not checked here.
  case control(JSONValue, to: RoomName)
  /// A message between programs.
  case data(RoomData, to: RoomName? = nil)
  /// A line for people, of at most 4,096 characters.
  case message(String, to: RoomName? = nil)
  /// Shares a file with the room. Its content follows over HTTP.
  case file(RoomFile)
}

extension RoomOperation {
  /// The names on the wire.
  enum Name: String, CaseIterable {
    case login, logout, join, leave, role, publish, subscribe, sdp, candidate, kick, close
    case call, answerCall, hangUp, control, data, message, file
  }

  /// Its name on the wire: `op`.
  public var name: String { word.rawValue }

  private var word: Name {
    switch self {
    case .login: .login
    case .logout: .logout
    case .join: .join
    case .leave: .leave
    case .role: .role
    case .publish: .publish
    case .subscribe: .subscribe
    case .sdp: .sdp
    case .candidate: .candidate
    case .kick: .kick
    case .close: .close
    case .call: .call
    case .answerCall: .answerCall
    case .hangUp: .hangUp
    case .control: .control
    case .data: .data
    case .message: .message
    case .file: .file
    }
  }

  // MARK: Writing

  /// The payload of the request, with its secrets.
  public var payload: JSONValue {
    switch self {
    case .login(let login): login.json
    case .logout, .leave: .object([])
    case .join(let join): join.json
    case .role(let role): ["role": .string(role.rawValue)]
    case .publish(let publication): publication.json
    case .subscribe(let subscription): subscription.json
    case .sdp(let description, let peer): .object(description.members + Self.to(peer))
    case .candidate(let candidate, let peer): .object(candidate.members + Self.to(peer))
    case .kick(let peer, let text):
      .object(["peer": .string(peer.rawValue), "text": text.map { .string($0) }])
    case .close(let text): .object(["text": text.map { .string($0) }])
    case .call(let call): call.json
    case .answerCall(let answer): answer.json
    case .hangUp(let call, let reason):
      .object(["call": .string(call.rawValue), "reason": reason.map { .string($0) }])
    case .control(let command, let peer): ["to": .string(peer.rawValue), "command": command]
    case .data(let data, let peer): .object(data.members + Self.to(peer))
    case .message(let text, let peer): .object([JSONValue.Member("text", .string(text))] + Self.to(peer))
    case .file(let file): .object(file.members)
    }
  }

  private static func to(_ peer: RoomName?) -> [JSONValue.Member] {
    peer.map { [JSONValue.Member("to", .string($0.rawValue))] } ?? []
  }

  // MARK: Reading

  init(_ name: Name, _ form: JSONForm) throws(JSONFormProblem) {
    switch name {
    case .login: self = .login(try RoomLogin(form))
    case .logout: self = .logout
    case .join: self = .join(try RoomJoin(form))
    case .leave: self = .leave
    case .role: self = .role(try form.word("role"))
    case .publish: self = .publish(try RoomPublication(form))
    case .subscribe: self = .subscribe(try RoomSubscription(form))
    case .sdp: self = .sdp(try RoomDescription(form), to: try form.optionalName("to"))
    case .candidate: self = .candidate(try RoomCandidate(form), to: try form.optionalName("to"))
    case .kick: self = .kick(try form.name("peer"), text: try form.optionalText("text"))
    case .close: self = .close(text: try form.optionalText("text"))
    case .call: self = .call(try RoomCallRequest(form))
    case .answerCall: self = .answerCall(try RoomCallAnswer(form))
    case .hangUp: self = .hangUp(call: try form.name("call"), reason: try form.optionalText("reason"))
    case .control: self = .control(try form.command("command"), to: try form.name("to"))
    case .data: self = .data(try RoomData(form), to: try form.optionalName("to"))
    case .message: self = .message(try form.text("text"), to: try form.optionalName("to"))
    case .file: self = .file(try RoomFile(form))
    }
  }
}

extension RoomOperation: CustomStringConvertible {
  /// Its name on the wire; what it holds may be secret, as a token is, or private, as what members write.
  public var description: String { name }
}
