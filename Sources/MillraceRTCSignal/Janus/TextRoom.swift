package import MillraceDialog
internal import MillraceJSON

/// The messages of Janus' text room, which go over the data channel of a `JanusClient` session as JSON: writes join, message and leave,
/// and reads what comes. Pure; not thread-safe.
///
/// Janus opens no channel by itself: this side opens one, named `channel`, and sends `join` once it is usable. Source: Janus, plugin
/// TextRoom, "Text Room API".
package struct TextRoom: Sendable {
  /// The label of the channel, as Janus' own pages name it.
  package static let channel = "JanusDataChannel"
  /// Requests whose answers are awaited at most; an older one is forgotten.
  private static let mostPending = 256
  /// Bytes of a message that is read at most.
  package static let mostBytes = 65_536

  /// What a message means.
  package enum Outcome: Sendable, Hashable {
    /// This client is in the room.
    case joined
    /// The room could not be joined, or this client is not in it any more: the session is over.
    case failed(DialogError)
    /// The server has taken the message with this number, or refused it.
    case sent(Int, DialogError?)
    case event(DialogEvent)
  }

  private enum Request: Hashable { case join, leave, message }

  /// The name of this client, unique in the room.
  package let user: String
  private let room: JanusID
  private let pin: String?
  private let display: String?
  private var pending: [(number: Int, request: Request)] = []
  private var last = 0

  /// - Parameter settings: with a room; without a `user` a random name is made.
  package init(_ settings: JanusSettings) {
    room = settings.room ?? .number(0)
    pin = settings.pin
    display = settings.display
    user = settings.user ?? Self.randomName()
  }

  private static func randomName() -> String {
    let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
    return "millrace-" + String((0..<12).map { _ in letters[Int.random(in: 0..<letters.count)] })
  }

  // MARK: Writing

  /// The request to join, to be sent as text once the channel is usable.
  package mutating func join() -> String {
    write(
      .join,
      [
        "pin": pin.map { .string($0) }, "username": .string(user),
        "display": display.map { .string($0) },
      ]
    ).text
  }

  /// A text for everybody, or for one participant; with the number under which `Outcome.sent` answers it.
  package mutating func message(_ text: String, to peer: String? = nil) -> (text: String, number: Int) {
    write(.message, ["to": peer.map { .string($0) }, "text": .string(text), "ack": true])
  }

  /// The request to leave.
  package mutating func leave() -> String { write(.leave, [:]).text }

  private mutating func write(
    _ request: Request, _ members: KeyValuePairs<String, JSONValue?>
  ) -> (text: String, number: Int) {
    last += 1
    if pending.count == Self.mostPending { pending.removeFirst() }
    pending.append((last, request))
    let head: [JSONValue.Member] = [
      JSONValue.Member("textroom", .string("\(request)")),
      JSONValue.Member("transaction", .string("\(last)")),
      JSONValue.Member("room", room.json),
    ]
    return (JSONValue.object(head + (JSONValue.object(members).members ?? [])).text, last)
  }

  // MARK: Reading

  /// What a message of the channel means; one that is not valid is an `error` event that says so.
  package mutating func read(_ bytes: [UInt8]) -> [Outcome] {
    guard bytes.count <= Self.mostBytes else {
      return [invalid("has \(bytes.count) bytes; at most \(Self.mostBytes) are read")]
    }
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch { return [invalid("is \(error)")] }
    guard let name = json["textroom"]?.string else { return [invalid("has no member \"textroom\"")] }
    if json["error_code"] != nil || name == "error" { return refused(json) }
    switch name {
    case "success": return succeeded(json)
    case "message", "announcement": return [message(json)]
    case "join": return participant(json, .joined)
    case "leave": return participant(json, .left)
    case "kicked": return kicked(json)
    case "destroyed":
      return ended(.kicked(.ended, text: "the room was destroyed"), "the room was destroyed")
    default: return [.event(.extra(name: "textroom", payload: json))]
    }
  }

  private func invalid(_ text: String) -> Outcome {
    .event(
      .error(
        RTCError.badAnswer.error("a message of the text room \(text)", reaction: .continue, scope: .command)))
  }

  private mutating func take(_ json: JSONValue) -> (number: Int, request: Request)? {
    guard let number = json["transaction"]?.string.flatMap({ Int($0) }),
      let index = pending.firstIndex(where: { $0.number == number })
    else { return nil }
    return pending.remove(at: index)
  }

  private mutating func refused(_ json: JSONValue) -> [Outcome] {
    let error = JanusErrors.error(
      of: .textroom, code: json["error_code"]?.integer ?? 0, reason: json["error"]?.string ?? "")
    guard let (number, request) = take(json) else {
      var error = error
      (error.reaction, error.scope) = (.continue, .command)
      return [.event(.error(error))]
    }
    switch request {
    case .join: return [.failed(error)]
    case .leave: return []
    case .message:
      var error = error
      (error.reaction, error.scope) = (.continue, .command)
      return [.sent(number, error)]
    }
  }

  private mutating func succeeded(_ json: JSONValue) -> [Outcome] {
    guard let (number, request) = take(json) else { return [] }
    switch request {
    case .leave: return []
    case .message: return [.sent(number, nil)]
    case .join:
      let others = json["participants"]?.array ?? []
      return [.joined] + others.prefix(JanusRoster.most).flatMap { participant($0, .joined) }
    }
  }

  private func message(_ json: JSONValue) -> Outcome {
    guard let text = json["text"]?.string else { return invalid("has no text") }
    return .event(.data(DialogData(.text(text), peer: json["from"]?.string)))
  }

  private func participant(_ json: JSONValue, _ change: DialogPeer.Change) -> [Outcome] {
    guard let id = json["username"]?.string, id != user else { return [] }
    return [.event(.peer(DialogPeer(id, change, name: json["display"]?.string)))]
  }

  private func kicked(_ json: JSONValue) -> [Outcome] {
    guard let id = json["username"]?.string else { return [] }
    guard id == user else { return [.event(.peer(DialogPeer(id, .left, reason: "kicked")))] }
    return ended(.kicked(.removed, text: "removed from the room"), "this client was removed from the room")
  }

  private func ended(_ event: DialogEvent, _ text: String) -> [Outcome] {
    [.event(event), .failed(RTCError.ended.error(text))]
  }
}
