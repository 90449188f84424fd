public import MillraceDialog

/// A message to the service.
public enum BailianRequest: Sendable, Hashable {
  /// Begins the task; the first message of a connection.
  case start(BailianStart)
  /// push2talk: sound follows.
  case sendSpeech
  /// push2talk: the last sound was sent.
  case stopSpeech
  /// What was said is to be forgotten.
  case cancelSpeech
  /// The reply is to end; the user wants to speak.
  case requestToSpeak
  /// Text, a picture or a vendor's own request to answer.
  case requestToRespond(Respond)
  /// Something has changed: pictures of a film, the client's state, parameters.
  case updateInfo(JSONValue)
  /// The first sample of a reply is heard.
  case localRespondingStarted
  /// The last sample of a reply was heard.
  case localRespondingEnded
  /// Keeps the connection from being taken for dead.
  case heartBeat
  /// Ends the task; the last message.
  case stop

  /// What to answer.
  public struct Respond: Sendable, Hashable {
    /// `transcript`: speak these words; `prompt`: ask the model.
    public enum Kind: String, Sendable, Hashable {
      /// Words to be said as they are; a question to be answered.
      case transcript, prompt
    }
    /// What is to be done with the text.
    public var kind: Kind
    /// May be empty, when a picture or `biz` says it all.
    public var text: String
    /// At most one picture.
    public var images: [DialogImage]
    /// `parameters.biz_params` for this request only.
    public var biz: JSONValue?
    /// `parameters` as they are, in the place of `images` and `biz`.
    public var parameters: JSONValue?

    public init(
      _ kind: Kind, _ text: String, images: [DialogImage] = [], biz: JSONValue? = nil,
      parameters: JSONValue? = nil
    ) {
      self.kind = kind
      self.text = text
      self.images = images
      self.biz = biz
      self.parameters = parameters
    }

    /// Bytes of a picture's Base64: the vendor's 180 KB, taken for the text, which holds for both ways to read them.
    public static let mostPicture = 180_000

    /// `payload.parameters`; nil when there are none.
    var json: JSONValue? {
      if let parameters { return parameters }
      let images = images.map(BailianRequest.image)
      let made: JSONValue = .object([
        "images": images.isEmpty ? nil : .array(images), "biz_params": biz,
      ])
      return made.members?.isEmpty == false ? made : nil
    }

    /// What the service would not take; nil: nothing known.
    public var problem: String? {
      let pictures = json?["images"]?.array ?? []
      if pictures.count > 1 { return "it has \(pictures.count) pictures, and the service takes one" }
      let longest =
        pictures.compactMap { $0["type"]?.string == "base64" ? $0["value"]?.string : nil }
        .map(\.utf8.count).max() ?? 0
      guard longest > Self.mostPicture else { return nil }
      return "its picture has \(longest) bytes in Base64, and the service takes \(Self.mostPicture)"
    }
  }

  /// The vendor's word for it.
  public var directive: String {
    switch self {
    case .start: "Start"
    case .sendSpeech: "SendSpeech"
    case .stopSpeech: "StopSpeech"
    case .cancelSpeech: "CancelSpeech"
    case .requestToSpeak: "RequestToSpeak"
    case .requestToRespond: "RequestToRespond"
    case .updateInfo: "UpdateInfo"
    case .localRespondingStarted: "LocalRespondingStarted"
    case .localRespondingEnded: "LocalRespondingEnded"
    case .heartBeat: "HeartBeat"
    case .stop: "Stop"
    }
  }

  /// The whole message.
  /// - Parameters:
  ///   - task: the connection's own id, never used twice.
  ///   - dialog: the dialogue's id, once the service has told it.
  public func json(task: String, dialog: String?) -> JSONValue {
    let action =
      switch self {
      case .start: "run-task"
      case .stop: "finish-task"
      default: "continue-task"
      }
    return [
      "header": ["action": .string(action), "task_id": .string(task), "streaming": "duplex"],
      "payload": payload(dialog),
    ]
  }

  private func payload(_ dialog: String?) -> JSONValue {
    let id = dialog.map { JSONValue.string($0) }
    let directive = JSONValue.string(directive)
    switch self {
    case .start(let start):
      return [
        "task_group": "aigc", "task": "multimodal-generation", "function": "generation",
        "model": "multimodal-dialog",
        "input": .object([
          "directive": directive, "workspace_id": .string(start.workspace), "app_id": .string(start.app),
          "dialog_id": start.dialog.map { .string($0) },
        ]),
        "parameters": start.parameters,
      ]
    case .requestToRespond(let respond):
      return .object([
        "input": .object([
          "directive": directive, "dialog_id": id, "type": .string(respond.kind.rawValue),
          "text": .string(respond.text),
        ]),
        "parameters": respond.json,
      ])
    case .updateInfo(let parameters):
      return ["input": .object(["directive": directive, "dialog_id": id]), "parameters": parameters]
    default: return ["input": .object(["directive": directive, "dialog_id": id])]
    }
  }

  /// A picture as the service wants it.
  static func image(_ image: DialogImage) -> JSONValue {
    switch image {
    case .url(let text): ["type": "url", "value": .string(text)]
    case .base64(let text): ["type": "base64", "value": .string(text)]
    }
  }
}
