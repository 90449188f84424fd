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
    case .transcript(let text, let isFinal): ["text": .string(text), "final": .bool(isFinal)]
    case .reply(let reply): reply.json
    case .replyStarted(let round): .object(["round": round.map { .string($0) }])
    case .replyEnded(let round, let utterances):
      .object(["round": round.map { .string($0) }, "utterances": .integer(utterances)])
    case .interrupted(let source): ["by": .string(source.rawValue)]
    case .command(let name, let payload), .extra(let name, let payload):
      ["name": .string(name), "payload": payload]
    case .media(let media): media.json
    case .emotion(let steps): ["steps": .array(steps.map(\.json))]
    case .gate(let gate, let isOn): ["gate": .string(gate.rawValue), "on": .bool(isOn)]
    case .usage(let usage): ["usage": usage]
    case .latency(let name, let time): ["name": .string(name), "ms": .double(time)]
    case .authWillExpire(let time): .object(["ms": time.map { .integer($0) }])
    case .kicked(let reason, let text): ["reason": .string(reason.rawValue), "text": .string(text)]
    case .peer(let peer): peer.json
    case .netQuality(let index, let grade, let peer):
      .object([
        "index": .double(index), "grade": .string(grade.rawValue), "peer": peer.map { .string($0) },
      ])
    case .error(let error): .object(error.members)
    case .unknown(let raw): ["raw": raw]
    case .answer(let answer): answer.json
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
      self = .transcript(text: try form.string("text"), isFinal: try form.bool("final"))
    case "reply": self = .reply(try DialogReply(form))
    case "replyStarted": self = .replyStarted(round: json["round"]?.string)
    case "replyEnded":
      self = .replyEnded(round: json["round"]?.string, utterances: try form.integer("utterances"))
    case "interrupted": self = .interrupted(by: try form.word("by"))
    case "command": self = .command(name: try form.string("name"), payload: json["payload"] ?? .null)
    case "media": self = .media(try DialogMedia(form))
    case "emotion": self = .emotion(try DialogEmotion.steps(form))
    case "gate": self = .gate(try form.word("gate"), isOn: try form.bool("on"))
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
    case "netQuality":
      return .netQuality(
        index: try form.number("index"), grade: try form.word("grade"), peer: json["peer"]?.string)
    case "error": return .error(try DialogError(form))
    case "extra": return .extra(name: try form.string("name"), payload: json["payload"] ?? .null)
    case "unknown": return .unknown(json["raw"] ?? .null)
    case "answer": return .answer(try DialogAnswer(form))
    default: throw JSONFormProblem("event", "has the unknown value \"\(form.path)\"")
    }
  }
}

extension DialogReply {
  var json: JSONValue {
    .object([
      "text": .string(text), "spoken": spoken.map { .string($0) }, "final": .bool(isFinal),
      "mode": .string(mode.rawValue), "round": round.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      text: try form.string("text"), spoken: form.json["spoken"]?.string, isFinal: try form.bool("final"),
      mode: try form.word("mode"), round: form.json["round"]?.string)
  }
}

extension DialogMedia {
  var json: JSONValue {
    .object([
      "kind": .string(kind.rawValue), "url": url.map { .string($0) }, "title": title.map { .string($0) },
      "text": text.map { .string($0) },
      "options": options.isEmpty ? nil : .array(options.map { .string($0) }), "detail": detail,
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.word("kind"), url: json["url"]?.string, title: json["title"]?.string,
      text: json["text"]?.string,
      options: json["options"]?.array?.compactMap(\.string) ?? [], detail: json["detail"])
  }
}

extension DialogEmotion {
  var json: JSONValue {
    .object([
      "name": .string(name), "startMs": .integer(startMilliseconds),
      "endMs": endMilliseconds.map { .integer($0) },
    ])
  }

  static func steps(_ form: JSONForm) throws(JSONFormProblem) -> [DialogEmotion] {
    var result: [DialogEmotion] = []
    for step in try form.array("steps") {
      result.append(
        DialogEmotion(
          try step.string("name"), startMilliseconds: try step.integer("startMs"),
          endMilliseconds: step.json["endMs"]?.integer))
    }
    return result
  }
}

extension DialogPeer {
  var json: JSONValue {
    .object([
      "id": .string(id), "change": .string(change.rawValue), "audio": sendsAudio.map { .bool($0) },
      "video": sendsVideo.map { .bool($0) }, "reason": reason.map { .string($0) },
    ])
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    self.init(
      try form.string("id"), try form.word("change"), sendsAudio: json["audio"]?.bool,
      sendsVideo: json["video"]?.bool, reason: json["reason"]?.string)
  }
}
