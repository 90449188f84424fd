public import MillraceDialog
public import MillraceJSON

/// A message to the service.
public enum BailianRequest: Sendable, Hashable {
  /// Starts the task; the first message of a connection.
  case start(BailianStart)
  /// push2talk: audio follows.
  case sendSpeech
  /// push2talk: the last audio was sent.
  case stopSpeech
  /// Discards what was said.
  case cancelSpeech
  /// Interrupts the reply; the user wants to speak.
  case requestToSpeak
  /// A text, an image or a vendor's own request to answer.
  case requestToRespond(Respond)
  /// An update: images of the video channel, the client's state, parameters.
  case updateInfo(JSONValue)
  /// The first sample of a reply was played.
  case localRespondingStarted
  /// The last sample of a reply was played.
  case localRespondingEnded
  /// Keeps the connection alive.
  case heartBeat
  /// Ends the task; the last message.
  case stop

  /// A request for a reply.
  public struct Respond: Sendable, Hashable {
    /// `transcript`: speak this text; `prompt`: ask the model.
    public enum Kind: String, Sendable, Hashable {
      /// A text to speak; a question to answer.
      case transcript, prompt
    }
    /// What to do with the text.
    public var kind: Kind
    /// The text; may be empty when an image or `biz` is the request.
    public var text: String
    /// At most one image.
    public var images: [DialogImage]
    /// `parameters.biz_params` for this request only.
    public var biz: JSONValue?
    /// `parameters`, unchanged, in place of `images` and `biz`.
    public var parameters: JSONValue?

    /// A request by its values.
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

    /// The limit for the Base64 of an image: the vendor's 180 KB, applied to the text, which satisfies both readings.
    public static let mostPicture = 180_000

    /// `payload.parameters`, or nil when there are none.
    var json: JSONValue? {
      if let parameters { return parameters }
      let images = images.map(BailianRequest.image)
      let made: JSONValue = .object([
        "images": images.isEmpty ? nil : .array(images), "biz_params": biz,
      ])
      return made.members?.isEmpty == false ? made : nil
    }

    /// Why the service would refuse the request, or nil.
    public var problem: String? {
      let pictures = json?["images"]?.array ?? []
      if pictures.count > 1 { return "it has \(pictures.count) images, and the service accepts one" }
      let longest =
        pictures.compactMap { $0["type"]?.string == "base64" ? $0["value"]?.string : nil }
        .map(\.utf8.count).max() ?? 0
      guard longest > Self.mostPicture else { return nil }
      return "its image has \(longest) bytes in Base64, and the service accepts \(Self.mostPicture)"
    }
  }

  /// The vendor's name of the message.
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

  /// The complete message.
  /// - Parameters:
  ///   - task: the connection's task id, never used twice.
  ///   - dialog: the dialogue's id, once the service has sent it.
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

  /// An image in the vendor's form.
  static func image(_ image: DialogImage) -> JSONValue {
    switch image {
    case .url(let text): ["type": "url", "value": .string(text)]
    case .base64(let text): ["type": "base64", "value": .string(text)]
    }
  }
}
