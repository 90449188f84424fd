public import MillraceDialog
public import MillraceJSON

/// A message of the command channel, the same for both generations.
public struct IVHPush: Sendable, Hashable {
  /// What a message is about.
  public enum Event: Sendable, Hashable {
    /// A text the service has received: one that was sent, or recognised so far. Stream generation.
    case input(String, Interruption?)
    /// A new input begins. Session generation.
    case newInput
    /// A sentence that will be spoken, or content of the dialogue's model.
    case speech(Speech)
    /// The avatar's state.
    case speaking(Speaking)
    /// Risk control has refused something. Stream generation.
    case moderated
    /// What the model considered. Session generation.
    case reasoning(String)
    /// A text that was discarded, because the present sentence is protected. Stream generation.
    case discarded(String)
    /// What is spoken, or the channel, failed.
    case failed(IVHFault, isReply: Bool)
    /// An unknown type.
    case unknown
  }

  /// Result of a forced interruption.
  public struct Interruption: Sendable, Hashable {
    /// It succeeded.
    public let isDone: Bool
    /// Why it did not.
    public let text: String
  }

  /// What is spoken.
  public struct Speech: Sendable, Hashable {
    /// The text that is spoken, without and with SSML.
    public var text, withMarks: String?
    /// The text to display, where it differs.
    public var display: String?
    /// True: the last part of it.
    public var isFinal = true
    /// True: one of several parts; session generation.
    public var isPart = false
    /// Neither a voice nor a text may interrupt it; the microphone is not to be heard during it.
    public var isUninterruptible = false, isMuted = false
    /// Something to display.
    public var media: DialogMedia?
    /// Members without a common form, unchanged: an interaction that is not known, the content's type, the dialogue's own extras.
    public var rest: [JSONValue.Member] = []
    /// The dialogue's script has ended.
    public var isScriptOver = false
  }

  /// A change of the avatar's state.
  public enum Speaking: Sendable, Hashable {
    /// A text or an utterance was accepted, and waits.
    case waiting
    /// It is spoken.
    case started
    /// It is over.
    case over(End)
    /// A sentence of a text in parts: the next may be sent; it is spoken; it is over.
    case sentenceNext, sentenceStarted, sentenceOver
    /// It failed.
    case failed
    /// Of no consequence: `Initial`, and what later versions add.
    case other(String)
  }

  /// How a text or an utterance ended: `FinalType`.
  public enum End: Int, Sendable, Hashable, CaseIterable {
    /// As the client asked, or as a text ends.
    case client = 1
    /// The client sent nothing more.
    case timeout
    /// Interrupted.
    case interrupted
  }

  /// What it is about.
  public var event: Event
  /// `SessionId`, if present.
  public var session: String?
  /// `SpeechId` or `ReqId`: the sentence, or the text or utterance.
  public var round: String?
  /// The payload, unchanged.
  public var raw: JSONValue

  /// A message by its event, without a payload.
  init(_ event: Event) {
    self.event = event
    raw = .object([] as [JSONValue.Member])
  }

  /// Parses a frame. Its texts are what users said, or what an avatar says: no error repeats them.
  public init(parsing bytes: [UInt8], _ generation: IVHGeneration) throws(JSONFormProblem) {
    let form = JSONForm(try IVHEnvelope.parse(bytes))
    if let fault = try IVHEnvelope.fault(of: form) {
      let payload = form["Payload"].flatMap { $0.members == nil ? nil : $0 }
      let round = payload.flatMap { Self.round($0, generation) }
      self.init(.failed(fault, isReply: round != nil && !fault.hasNoSession && !fault.isReplaced))
      self.round = round
      raw = payload ?? raw
      session = raw["SessionId"]?.string
      return
    }
    try self.init(payload: form.object("Payload"), generation)
  }

  /// Parses the payload of a frame, or of the answer to a text that was sent by a request.
  init(payload: JSONForm, _ generation: IVHGeneration) throws(JSONFormProblem) {
    raw = payload.json
    session = raw["SessionId"]?.string
    round = Self.round(raw, generation)
    guard let type = IVHNumber.read(payload["Type"]) else {
      throw payload.problem("Type", "must be an integer")
    }
    event =
      try generation == .stream
      ? Self.stream(type, payload, round: round) : Self.session(type, payload, round: round)
  }

  private static func round(_ payload: JSONValue, _ generation: IVHGeneration) -> String? {
    switch generation {
    case .stream: payload["SpeechId"]?.integer.map(String.init) ?? payload["SpeechId"]?.string
    case .session: payload["ReqId"]?.string.flatMap { $0.isEmpty ? nil : $0 }
    }
  }

  // MARK: The stream generation

  private static func stream(
    _ type: Int, _ payload: JSONForm, round: String?
  ) throws(JSONFormProblem) -> Event {
    switch type {
    case 1: return .input(payload["Text"]?.string ?? "", interruption(payload))
    case 2: return .speech(speech(payload, round: round))
    case 3:
      switch try payload.string("SpeakStatus") {
      case "speak_start": return .speaking(.started)
      case "speak_over": return .speaking(.over(.client))
      case let other: return .speaking(.other(other))
      }
    case 5: return .moderated
    case 7: return .discarded(payload["Text"]?.string ?? "")
    default: return .unknown
    }
  }

  private static func interruption(_ payload: JSONForm) -> Interruption? {
    guard let result = IVHNumber.read(payload["InterruptResult"]), result != 0 else { return nil }
    return Interruption(isDone: result == 1, text: payload["InterruptMessage"]?.string ?? "")
  }

  // MARK: The session generation

  private static func session(
    _ type: Int, _ payload: JSONForm, round: String?
  ) throws(JSONFormProblem) -> Event {
    switch type {
    case 1: return .newInput
    case 2: return .speech(speech(payload, round: round))
    case 3: return .speaking(try speaking(payload))
    case 4:
      var content = speech(payload, round: round)
      content.isPart = true
      content.isFinal = payload["Final"]?.bool ?? false
      return .speech(content)
    case 5: return .reasoning(payload["Text"]?.string ?? "")
    case 0, 9: return .failed(fault(payload), isReply: true)
    default: return .unknown
    }
  }

  private static func speaking(_ payload: JSONForm) throws(JSONFormProblem) -> Speaking {
    let end = IVHNumber.read(payload["FinalType"]).flatMap(End.init) ?? .client
    return switch try payload.string("SpeakStatus") {
    case "WaitingTextStart", "WaitingAudioStart": .waiting
    case "TextStart", "AudioStart": .started
    case "TextOver", "AudioOver": .over(end)
    case "SentenceNext": .sentenceNext
    case "SentenceStart": .sentenceStarted
    case "SentenceOver": .sentenceOver
    case "Error": .failed
    case let other: .other(other)
    }
  }

  private static func fault(_ payload: JSONForm) -> IVHFault {
    IVHFault(
      IVHNumber.read(payload["ErrorCode"]) ?? 0,
      payload["ErrorMsg"]?.string ?? payload["ErrorMessage"]?.string ?? "")
  }

  // MARK: Both

  private static let known: Set<String> = [
    "Type", "SessionId", "SpeechId", "ReqId", "Seq", "Text", "TextPro", "TextDisplay", "Final", "Uninterrupt",
    "Muted", "ChatStatus", "InteractionType", "InteractionContent",
  ]

  private static func speech(_ payload: JSONForm, round: String?) -> Speech {
    var speech = Speech()
    speech.text = payload["Text"]?.string
    speech.withMarks = payload["TextPro"]?.string
    speech.display = payload["TextDisplay"]?.string
    speech.isUninterruptible = payload["Uninterrupt"]?.bool ?? false
    speech.isMuted = payload["Muted"]?.bool ?? false
    speech.isScriptOver = IVHNumber.read(payload["ChatStatus"]) == 4
    speech.rest = (payload.json.members ?? []).filter { !known.contains($0.name) && !$0.value.isNull }
    let kind = payload["InteractionType"]?.string ?? ""
    guard !kind.isEmpty else { return speech }
    let value = payload["InteractionContent"] ?? .null
    // Some versions send the content as JSON, not as a text that holds it.
    let content = value.string ?? value.text
    speech.media = IVHInteraction.media(kind, content, title: speech.display ?? speech.text, round: round)
    if speech.media == nil {
      speech.rest += [
        JSONValue.Member("InteractionType", .string(kind)), JSONValue.Member("InteractionContent", value),
      ]
    }
    return speech
  }
}
