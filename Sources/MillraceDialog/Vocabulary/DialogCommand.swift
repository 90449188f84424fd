public import MillraceJSON

/// A command to a service, in a form that is the same for every service.
///
/// A command a service has no equivalent for is refused, and changes nothing. `force` carries a command out where the service does not
/// allow the reply to be interrupted (`uninterruptible`).
public enum DialogCommand: Sendable, Hashable {
  /// The user starts to speak: button down, or tap.
  case startSpeech
  /// The user has spoken; expects an answer.
  case stopSpeech
  /// Discards what was spoken since `startSpeech`.
  case cancelSpeech
  /// Interrupts the reply.
  case interrupt(isForced: Bool = false)
  /// Speaks this text verbatim.
  case say(String, isForced: Bool = false)
  /// Asks a question, with images.
  case ask(String, images: [DialogImage], isForced: Bool = false)
  /// Changes settings of the dialogue, under the vendor's names.
  case update(JSONValue)
  /// Stops or starts sending a track, without ending anything; with a peer, receiving that peer's.
  case mute(DialogTrack, isOn: Bool, peer: String? = nil)
  /// Changes the role in the room: `speaker`, `viewer`, or a vendor's name.
  case setRole(String)
  /// Replaces the credentials; nil: fetches new ones.
  case refreshAuth(token: String?)
  /// Ends the dialogue, or leaves the room; with the id of a call, ends that call only. The reason is sent where the vendor has one.
  case hangUp(call: String? = nil, reason: String? = nil)
  /// A vendor's own command.
  case extra(name: String, payload: JSONValue)
  /// Begins again after the end: a new dialogue or session, or the room is joined. The values replace those of the node's parameters of the
  /// same names; nil: none, and a dialogue to resume is not kept. Only a node with `"afterEnd":"wait"` is there to take it.
  case begin(values: JSONValue? = nil)
  /// Calls a participant.
  case call(DialogCallRequest)
  /// Accepts or rejects an incoming call.
  case answerCall(DialogCallAnswer)
  /// Publishes a track in the room, or no longer.
  case publish(DialogTrack, isOn: Bool)
  /// Subscribes to a track of one peer, of all, or of those who will join; or no longer.
  case subscribe(DialogPeers, DialogTrack, isOn: Bool)
  /// Sends a message beside audio and video.
  case data(DialogData)
}

extension DialogCommand {
  /// The reason of a `hangUp` that `dialog.turn` sends when the service was not ready in time: a session that does not run has failed.
  public static let timeout = "timeout"

  /// Its name in JSON.
  public var name: String {
    switch self {
    case .startSpeech: "startSpeech"
    case .stopSpeech: "stopSpeech"
    case .cancelSpeech: "cancelSpeech"
    case .interrupt: "interrupt"
    case .say: "say"
    case .ask: "ask"
    case .update: "update"
    case .mute: "mute"
    case .setRole: "setRole"
    case .refreshAuth: "refreshAuth"
    case .hangUp: "hangUp"
    case .extra: "extra"
    case .begin: "begin"
    case .call: "call"
    case .answerCall: "answerCall"
    case .publish: "publish"
    case .subscribe: "subscribe"
    case .data: "data"
    }
  }

  /// True for `begin`, the only command for the time after the end.
  public var isBeginning: Bool { if case .begin = self { true } else { false } }

  /// The JSON for a link or a node's mailbox: `{"command":"ask","text":"what is this?"}`.
  public var json: JSONValue {
    .object([JSONValue.Member("command", .string(name))] + (details.members ?? []))
  }

  /// All members except the name. `force` is there only when it is true.
  private var details: JSONValue {
    switch self {
    case .startSpeech, .stopSpeech, .cancelSpeech: .object([])
    case .interrupt(let isForced): .object(["force": isForced ? true : nil])
    case .say(let text, let isForced): .object(["text": .string(text), "force": isForced ? true : nil])
    case .ask(let text, let images, let isForced):
      .object([
        "text": .string(text), "images": images.isEmpty ? nil : .array(images.map(\.json)),
        "force": isForced ? true : nil,
      ])
    case .update(let values): ["values": values]
    case .mute(let track, let isOn, let peer):
      .object([
        "track": .string(track.rawValue), "on": .bool(isOn), "peer": peer.map { .string($0) },
      ])
    case .setRole(let role): ["role": .string(role)]
    case .refreshAuth(let token): .object(["token": token.map { .string($0) }])
    case .hangUp(let call, let reason):
      .object(["call": call.map { .string($0) }, "reason": reason.map { .string($0) }])
    case .extra(let name, let payload): ["name": .string(name), "payload": payload]
    case .begin(let values): .object(["values": values])
    case .call(let call): .object(call.members)
    case .answerCall(let answer): .object(answer.members)
    case .publish(let track, let isOn): ["track": .string(track.rawValue), "on": .bool(isOn)]
    case .subscribe(let peers, let track, let isOn):
      .object([
        peers.member, JSONValue.Member("track", .string(track.rawValue)), JSONValue.Member("on", .bool(isOn)),
      ])
    case .data(let data): data.json
    }
  }

  /// Reads the JSON form. Unknown members are ignored.
  public init(json: JSONValue) throws(JSONFormProblem) {
    guard let name = json["command"]?.string else {
      throw JSONFormProblem("command", "must be a string")
    }
    let form = JSONForm(json, at: name)
    switch name {
    case "startSpeech": self = .startSpeech
    case "stopSpeech": self = .stopSpeech
    case "cancelSpeech": self = .cancelSpeech
    case "interrupt": self = .interrupt(isForced: try Self.force(form))
    case "say": self = .say(try form.string("text"), isForced: try Self.force(form))
    case "ask":
      self = .ask(
        try form.string("text"), images: try DialogImage.list(form), isForced: try Self.force(form))
    case "update": self = .update(json["values"] ?? .object([]))
    case "mute":
      self = .mute(try form.word("track"), isOn: try form.bool("on"), peer: try Self.name("peer", form))
    case "refreshAuth": self = .refreshAuth(token: json["token"]?.string)
    case "hangUp": self = .hangUp(call: try Self.name("call", form), reason: json["reason"]?.string)
    case "extra": self = .extra(name: try form.string("name"), payload: json["payload"] ?? .null)
    default: self = try Self.inRoom(form)
    }
  }

  private static func inRoom(_ form: JSONForm) throws(JSONFormProblem) -> DialogCommand {
    switch form.path {
    case "setRole": return .setRole(try form.string("role"))
    case "begin": return .begin(values: form["values"] == nil ? nil : try form.object("values").json)
    case "call": return .call(try DialogCallRequest(form))
    case "answerCall": return .answerCall(try DialogCallAnswer(form))
    case "publish": return .publish(try form.word("track"), isOn: try form.bool("on"))
    case "subscribe":
      return .subscribe(try DialogPeers(form), try form.word("track"), isOn: try form.bool("on"))
    case "data": return .data(try DialogData(form))
    default: throw JSONFormProblem("command", "has the unknown value \"\(form.path)\"")
    }
  }

  /// Whom or what a command concerns. A value that is no string must not read as none, which would concern more.
  private static func name(_ member: String, _ form: JSONForm) throws(JSONFormProblem) -> String? {
    form[member] == nil ? nil : try form.string(member)
  }

  /// A `force` that is not a Boolean is a mistake, and must not read as false.
  private static func force(_ form: JSONForm) throws(JSONFormProblem) -> Bool {
    form["force"] == nil ? false : try form.bool("force")
  }
}
