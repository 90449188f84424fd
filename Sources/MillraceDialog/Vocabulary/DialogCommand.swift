/// Something the program, the user's hand or `dialog.turn` asks a service to do, in words that hold for every service.
public enum DialogCommand: Sendable, Hashable {
  /// The user begins to speak (the button goes down, the tap).
  case startSpeech
  /// The user has spoken; an answer is due.
  case stopSpeech
  /// What was spoken since `startSpeech` is to be forgotten.
  case cancelSpeech
  /// The answer is not to go on.
  case interrupt
  /// Says these words as they are.
  case say(String)
  /// Answers these words, about these pictures.
  case ask(String, images: [DialogImage])
  /// Changes something of the dialogue, under the vendor's own names.
  case update(JSONValue)
  /// Stops or starts sending sound or pictures, without ending anything.
  case mute(DialogTrack, isOn: Bool)
  /// Becomes somebody else in the room: `speaker`, `viewer`, or a word of the vendor's.
  case setRole(String)
  /// Uses new credentials; nil: gets some itself.
  case refreshAuth(token: String?)
  /// Ends the dialogue.
  case hangUp
  /// Something without a common word, under the vendor's own name.
  case extra(name: String, payload: JSONValue)
}

/// What can be muted.
public enum DialogTrack: String, Sendable, Hashable, CaseIterable {
  /// The user's sound; the user's picture.
  case audio, video
}

/// A picture that goes with a question.
public enum DialogImage: Sendable, Hashable {
  /// Where the service finds it.
  case url(String)
  /// JPEG in standard Base64, with no prefix.
  case base64(String)
}

extension DialogCommand {
  /// The word for it in JSON.
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
    }
  }

  /// As it goes over a link or to a node's mailbox: `{"command":"ask","text":"what is this?"}`.
  public var json: JSONValue {
    let word: JSONValue = .string(name)
    return switch self {
    case .startSpeech, .stopSpeech, .cancelSpeech, .interrupt, .hangUp: ["command": word]
    case .say(let text): ["command": word, "text": .string(text)]
    case .ask(let text, let images):
      .object([
        "command": word, "text": .string(text),
        "images": images.isEmpty ? nil : .array(images.map(\.json)),
      ])
    case .update(let values): ["command": word, "values": values]
    case .mute(let track, let isOn): ["command": word, "track": .string(track.rawValue), "on": .bool(isOn)]
    case .setRole(let role): ["command": word, "role": .string(role)]
    case .refreshAuth(let token): .object(["command": word, "token": token.map { .string($0) }])
    case .extra(let name, let payload): ["command": word, "name": .string(name), "payload": payload]
    }
  }

  /// Reads what `json` wrote. Members it does not know are left alone.
  public init(json: JSONValue) throws(DialogFormProblem) {
    guard let name = json["command"]?.string else {
      throw DialogFormProblem("a command needs a text \"command\"")
    }
    let form = DialogForm(json, of: name)
    switch name {
    case "startSpeech": self = .startSpeech
    case "stopSpeech": self = .stopSpeech
    case "cancelSpeech": self = .cancelSpeech
    case "interrupt": self = .interrupt
    case "hangUp": self = .hangUp
    case "say": self = .say(try form.string("text"))
    case "ask": self = .ask(try form.string("text"), images: try DialogImage.list(form))
    case "update": self = .update(json["values"] ?? .object([]))
    case "mute": self = .mute(try form.word("track"), isOn: try form.bool("on"))
    case "setRole": self = .setRole(try form.string("role"))
    case "refreshAuth": self = .refreshAuth(token: json["token"]?.string)
    case "extra": self = .extra(name: try form.string("name"), payload: json["payload"] ?? .null)
    default: throw DialogFormProblem("\"\(name)\" is no command of a dialogue")
    }
  }
}

extension DialogImage {
  var json: JSONValue {
    switch self {
    case .url(let text): ["url": .string(text)]
    case .base64(let text): ["base64": .string(text)]
    }
  }

  static func list(_ form: DialogForm) throws(DialogFormProblem) -> [DialogImage] {
    guard let images = form.json["images"] else { return [] }
    guard let images = images.array else { throw form.problem("\"images\" has to be a list") }
    var result: [DialogImage] = []
    for image in images {
      if let text = image["url"]?.string {
        result.append(.url(text))
      } else if let text = image["base64"]?.string {
        result.append(.base64(text))
      } else {
        throw form.problem("an image needs a text \"url\" or \"base64\"")
      }
    }
    return result
  }
}
