public import MillraceJSON

/// A command to a service, in a form that is the same for every service.
public enum DialogCommand: Sendable, Hashable {
  /// The user starts to speak: button down, or tap.
  case startSpeech
  /// The user has spoken; expects an answer.
  case stopSpeech
  /// Discards what was spoken since `startSpeech`.
  case cancelSpeech
  /// Interrupts the reply.
  case interrupt
  /// Speaks this text verbatim.
  case say(String)
  /// Asks a question, with images.
  case ask(String, images: [DialogImage])
  /// Changes settings of the dialogue, under the vendor's names.
  case update(JSONValue)
  /// Stops or starts sending audio or video, without ending anything.
  case mute(DialogTrack, isOn: Bool)
  /// Changes the role in the room: `speaker`, `viewer`, or a vendor's name.
  case setRole(String)
  /// Replaces the credentials; nil: fetches new ones.
  case refreshAuth(token: String?)
  /// Ends the dialogue.
  case hangUp
  /// A vendor's own command.
  case extra(name: String, payload: JSONValue)
}

/// What can be muted.
public enum DialogTrack: String, Sendable, Hashable, CaseIterable {
  /// The user's audio; the user's video.
  case audio, video
}

/// An image of a question.
public enum DialogImage: Sendable, Hashable {
  /// Its URL, readable by the service.
  case url(String)
  /// JPEG in standard Base64, without a prefix.
  case base64(String)
}

extension DialogCommand {
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
    }
  }

  /// The JSON for a link or a node's mailbox: `{"command":"ask","text":"what is this?"}`.
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
    case "interrupt": self = .interrupt
    case "hangUp": self = .hangUp
    case "say": self = .say(try form.string("text"))
    case "ask": self = .ask(try form.string("text"), images: try DialogImage.list(form))
    case "update": self = .update(json["values"] ?? .object([]))
    case "mute": self = .mute(try form.word("track"), isOn: try form.bool("on"))
    case "setRole": self = .setRole(try form.string("role"))
    case "refreshAuth": self = .refreshAuth(token: json["token"]?.string)
    case "extra": self = .extra(name: try form.string("name"), payload: json["payload"] ?? .null)
    default: throw JSONFormProblem("command", "has the unknown value \"\(name)\"")
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

  static func list(_ form: JSONForm) throws(JSONFormProblem) -> [DialogImage] {
    guard form.json["images"] != nil else { return [] }
    var result: [DialogImage] = []
    for image in try form.array("images") {
      if let text = image.json["url"]?.string {
        result.append(.url(text))
      } else if let text = image.json["base64"]?.string {
        result.append(.base64(text))
      } else {
        throw JSONFormProblem(image.path, "must have a string \"url\" or \"base64\"")
      }
    }
    return result
  }
}
