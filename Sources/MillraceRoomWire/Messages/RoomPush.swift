public import MillraceJSON

/// What a hub says unasked: `{"event":"peer","payload":{…}}`, Documentation/room.md, section "Pushes".
public enum RoomPush: Sendable, Hashable {
  /// Another peer has joined, has left, or has changed.
  case peer(RoomPeerChange)
  /// Which peer's packets a medium carries from now on.
  case slot(RoomSlot)
  /// A description of a peer.
  case sdp(RoomDescription, from: RoomName)
  /// A candidate of a peer, or that no more follow.
  case candidate(RoomCandidate, from: RoomName)
  /// A picture from which a decoder can begin is wanted of this member.
  case keyFrame
  /// Who speaks; empty: nobody.
  case speaking([RoomLevel])
  /// What happened to a call.
  case call(RoomCallChange)
  /// A command of a peer: an object with a string `command`, whose other members are not checked here.
  case control(JSONValue, from: RoomName)
  /// A message of a peer's program.
  case data(RoomData, from: RoomName)
  /// A line of a peer, for people.
  case message(String, from: RoomName)
  /// A file of a peer, which can be read under its id from now on.
  case file(RoomFile, id: RoomName, from: RoomName)
  /// The token ends in so many milliseconds: log in again with a new one.
  case authWillExpire(inMilliseconds: Int)
  /// This member is out of the room; the connection stays.
  case kicked(RoomKickReason, text: String? = nil)
  /// A message of this member was no request.
  case error(RoomError)
  /// An event that this version does not know, to be ignored.
  case unknown(name: String, payload: JSONValue)
}

extension RoomPush {
  /// The names on the wire.
  enum Name: String, CaseIterable {
    case peer, slot, sdp, candidate, keyFrame, speaking, call, control, data, message, file,
      authWillExpire, kicked, error
  }

  /// Its name on the wire: `event`.
  public var name: String {
    let word: Name
    switch self {
    case .peer: word = .peer
    case .slot: word = .slot
    case .sdp: word = .sdp
    case .candidate: word = .candidate
    case .keyFrame: word = .keyFrame
    case .speaking: word = .speaking
    case .call: word = .call
    case .control: word = .control
    case .data: word = .data
    case .message: word = .message
    case .file: word = .file
    case .authWillExpire: word = .authWillExpire
    case .kicked: word = .kicked
    case .error: word = .error
    case .unknown(let name, _): return name
    }
    return word.rawValue
  }

  // MARK: Writing

  /// The message.
  public var json: JSONValue { .message([.init("event", .string(name))], payload: payload) }

  /// The message as text.
  public var text: String { json.text }

  /// The bytes of `text`.
  public var bytes: [UInt8] { json.bytes }

  /// The payload of the push.
  public var payload: JSONValue {
    switch self {
    case .peer(let change): change.json
    case .slot(let slot): slot.json
    case .sdp(let description, let peer): .object(description.members + [Self.from(peer)])
    case .candidate(let candidate, let peer): .object(candidate.members + [Self.from(peer)])
    case .keyFrame: .object([])
    case .speaking(let peers): ["peers": .array(peers.map(\.json))]
    case .call(let call): call.json
    case .control(let command, let peer): .object([Self.from(peer), .init("command", command)])
    case .data(let data, let peer): .object([Self.from(peer)] + data.members)
    case .message(let text, let peer): .object([Self.from(peer), .init("text", .string(text))])
    case .file(let file, let id, let peer):
      .object([Self.from(peer), JSONValue.Member("id", .string(id.rawValue))] + file.members)
    case .authWillExpire(let time): ["inMs": .integer(time)]
    case .kicked(let reason, let text):
      .object(["reason": .string(reason.rawValue), "text": text.map { .string($0) }])
    case .error(let error): error.json
    case .unknown(_, let payload): payload
    }
  }

  private static func from(_ peer: RoomName) -> JSONValue.Member { .init("from", .string(peer.rawValue)) }

  // MARK: Reading

  /// Reads a text frame. Unknown members are ignored, and an unknown event is no problem, whatever it carries.
  public init(parsing bytes: [UInt8]) throws(RoomReadProblem) { try self.init(try JSONForm.message(bytes)) }

  init(_ form: JSONForm) throws(RoomReadProblem) {
    guard let event = form["event"]?.string else {
      throw RoomReadProblem(.badMessage, "\"event\" must be a string")
    }
    guard let name = Name(rawValue: event) else {
      let payload = form["payload"].flatMap { $0.members == nil ? nil : $0 }
      self = .unknown(name: event, payload: payload ?? .object([]))
      return
    }
    do throws(JSONFormProblem) { self = try Self.read(name, try form.payload()) } catch {
      throw RoomReadProblem(error)
    }
  }

  private static func read(_ name: Name, _ form: JSONForm) throws(JSONFormProblem) -> RoomPush {
    switch name {
    case .peer: return .peer(try RoomPeerChange(form))
    case .slot: return .slot(try RoomSlot(form))
    case .sdp: return .sdp(try RoomDescription(form), from: try form.name("from"))
    case .candidate: return .candidate(try RoomCandidate(form), from: try form.name("from"))
    case .keyFrame: return .keyFrame
    case .speaking: return .speaking(try RoomLevel.list(form, "peers"))
    case .call: return .call(try RoomCallChange(form))
    case .control: return .control(try form.command("command"), from: try form.name("from"))
    case .data: return .data(try RoomData(form), from: try form.name("from"))
    case .message: return .message(try form.text("text"), from: try form.name("from"))
    case .file: return .file(try RoomFile(form), id: try form.name("id"), from: try form.name("from"))
    case .authWillExpire:
      return .authWillExpire(inMilliseconds: try form.integer("inMs", in: RoomLimits.milliseconds))
    case .kicked: return .kicked(try form.word("reason"), text: try form.optionalText("text"))
    case .error: return .error(try RoomError(form))
    }
  }
}
