public import MillraceJSON

extension DialogEvent {
  /// The JSON for a link: `{"event":"transcript","text":"hello","final":false}`.
  public var json: JSONValue {
    .object([JSONValue.Member("event", .string(name))] + (details.members ?? []))
  }

  /// All members except the name.
  public var details: JSONValue {
    switch self {
    case .connected, .speechStarted, .speechEnded, .authExpired: .object([])
    case .conversationStarted(let id): ["id": .string(id)]
    case .state(let state): ["state": .string(state.rawValue)]
    case .transcript(let text, let isFinal, let round):
      .object([
        "text": .string(text), "final": .bool(isFinal), "round": round.map { .string($0) },
      ])
    case .reply(let reply): reply.json
    case .replyStarted(let round): .object(["round": round.map { .string($0) }])
    case .replyEnded(let round, let utterances):
      .object(["round": round.map { .string($0) }, "utterances": .integer(utterances)])
    case .interrupted(let source, let round):
      .object(["by": .string(source.rawValue), "round": round.map { .string($0) }])
    case .command(let name, let payload, let round):
      .object(["name": .string(name), "payload": payload, "round": round.map { .string($0) }])
    case .media(let media): media.json
    case .emotion(let steps, let round):
      .object(["steps": .array(steps.map(\.json)), "round": round.map { .string($0) }])
    case .gate(let gate, let isOn, let round):
      .object([
        "gate": .string(gate.rawValue), "on": .bool(isOn), "round": round.map { .string($0) },
      ])
    default: rareDetails
    }
  }

  private var rareDetails: JSONValue {
    switch self {
    case .usage(let usage): ["usage": usage]
    case .latency(let name, let time): ["name": .string(name), "ms": .double(time)]
    case .authWillExpire(let time): .object(["ms": time.map { .integer($0) }])
    case .kicked(let reason, let text): ["reason": .string(reason.rawValue), "text": .string(text)]
    case .peer(let peer): peer.json
    case .netQuality(let quality): quality.json
    case .error(let error): .object(error.members)
    case .extra(let name, let payload): ["name": .string(name), "payload": payload]
    case .unknown(let raw): ["raw": raw]
    case .answer(let answer): answer.json
    case .call(let call): call.json
    case .role(let role): ["role": .string(role)]
    case .track(let track, let change):
      ["track": .string(track.rawValue), "change": .string(change.rawValue)]
    case .level(let level): level.json
    case .speaking(let peers): ["peers": .array(peers.map(\.json))]
    case .device(let device): device.json
    case .progress(let progress): progress.json
    case .data(let data): data.json
    // Those of `details`.
    default: .object([])
    }
  }

  /// Parses the text of an event, such as the `json` of a `GraphEvent` that a service node posted:
  ///
  /// ```swift
  /// for await event in run.events where event.node == "bot" {
  ///   if case .transcript(let text, isFinal: true) = try? DialogEvent(parsing: event.json) { print(text) }
  /// }
  /// ```
  public init(parsing text: String) throws(JSONFormProblem) {
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: text) } catch {
      throw JSONFormProblem("", error.description)
    }
    try self.init(json: json)
  }

  /// Reads the JSON form. Unknown members are ignored: events on links also carry `time` and `node`.
  public init(json: JSONValue) throws(JSONFormProblem) {
    guard let name = json["event"]?.string else {
      throw JSONFormProblem("event", "must be a string")
    }
    let form = JSONForm(json, at: name)
    switch name {
    case "connected": self = .connected
    case "conversationStarted": self = .conversationStarted(id: try form.string("id"))
    case "state": self = .state(try form.word("state"))
    case "speechStarted": self = .speechStarted
    case "speechEnded": self = .speechEnded
    case "transcript":
      self = .transcript(
        text: try form.string("text"), isFinal: try form.bool("final"), round: json["round"]?.string)
    case "reply": self = .reply(try DialogReply(form))
    case "replyStarted": self = .replyStarted(round: json["round"]?.string)
    case "replyEnded":
      self = .replyEnded(round: json["round"]?.string, utterances: try form.integer("utterances"))
    case "interrupted": self = .interrupted(by: try form.word("by"), round: json["round"]?.string)
    case "command":
      self = .command(
        name: try form.string("name"), payload: json["payload"] ?? .null, round: json["round"]?.string)
    case "media": self = .media(try DialogMedia(form))
    case "emotion": self = .emotion(try DialogEmotion.steps(form), round: json["round"]?.string)
    case "gate":
      self = .gate(try form.word("gate"), isOn: try form.bool("on"), round: json["round"]?.string)
    default: self = try Self.rare(form)
    }
  }

  private static func rare(_ form: JSONForm) throws(JSONFormProblem) -> DialogEvent {
    let json = form.json
    switch form.path {
    case "usage": return .usage(json["usage"] ?? .null)
    case "latency":
      return .latency(name: try form.string("name"), milliseconds: try form.number("ms"))
    case "authWillExpire": return .authWillExpire(inMilliseconds: json["ms"]?.integer)
    case "authExpired": return .authExpired
    case "kicked": return .kicked(try form.word("reason"), text: json["text"]?.string ?? "")
    case "peer": return .peer(try DialogPeer(form))
    case "netQuality": return .netQuality(try DialogNetQuality(form))
    case "error": return .error(try DialogError(form))
    case "extra": return .extra(name: try form.string("name"), payload: json["payload"] ?? .null)
    case "unknown": return .unknown(json["raw"] ?? .null)
    case "answer": return .answer(try DialogAnswer(form))
    default: return try inRoom(form)
    }
  }

  private static func inRoom(_ form: JSONForm) throws(JSONFormProblem) -> DialogEvent {
    switch form.path {
    case "call": return .call(try DialogCall(form))
    case "role": return .role(try form.string("role"))
    case "track": return .track(try form.word("track"), try form.word("change"))
    case "level": return .level(try DialogLevel(form))
    case "speaking": return .speaking(try DialogLevel.list(form))
    case "device": return .device(try DialogDevice(form))
    case "progress": return .progress(try DialogProgress(form))
    case "data": return .data(try DialogData(form))
    default: throw JSONFormProblem("event", "has the unknown value \"\(form.path)\"")
    }
  }
}
