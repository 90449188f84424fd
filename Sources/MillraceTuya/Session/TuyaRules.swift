public import MillraceCore
public import MillraceDialog
public import MillraceJSON

/// A format in which an agent may send the sound of its replies.
public struct TuyaReplyFormat: Sendable, Hashable {
  /// The codec: `mp3`, `pcm` or `opus`.
  public var format: String
  /// The container; nil: none is asked for.
  public var container: String?
  /// Sample rate in Hz.
  public var sampleRate: Int
  /// Bits of a sample; nil: not said.
  public var bitDepth: Int?
  /// Channels.
  public var channels: Int
  /// Bit rate in bit/s; nil: not said.
  public var bitRate: Int?

  /// Creates a format.
  public init(
    _ format: String, container: String? = nil, sampleRate: Int = 16_000, bitDepth: Int? = nil,
    channels: Int = 1, bitRate: Int? = nil
  ) {
    self.format = format
    self.container = container
    self.sampleRate = sampleRate
    self.bitDepth = bitDepth
    self.channels = channels
    self.bitRate = bitRate
  }

  /// As an entry of `tts.order.supports`.
  public var json: JSONValue {
    .object([
      "format": .string(format), "container": container.map { .string($0) },
      "sampleRate": .integer(sampleRate), "bitDepth": bitDepth.map { .integer($0) },
      "channels": .integer(channels), "bitRate": bitRate.map { .integer($0) },
    ])
  }
}

/// The rules of a session.
public struct TuyaRules: Sendable, Hashable {
  /// How the user's audio is divided into events.
  public enum Speech: String, Sendable, Hashable, CaseIterable {
    /// An event a turn: its sound ends with the button, or where the cloud hears the end.
    case single
    /// One event as long as the session: its sound never ends, and the cloud divides it into rounds. Only in duplex.
    case long
  }

  /// What happens to pictures of the input `image`.
  public enum Pictures: String, Sendable, Hashable, CaseIterable {
    /// The latest goes with the next question.
    case image
    /// All are sent while an event is open, as a video.
    case video
  }

  /// How the user takes a turn.
  public var mode: DialogMode
  /// How the user's audio is divided into events.
  public var speech: Speech
  /// The cloud detects the end of speech in tap-to-talk and in duplex (`asr.enableVad`). In push-to-talk only the button does.
  public var vad = true
  /// The user may interrupt a reply by speaking (`processing.interrupt`). Only in long events.
  public var interrupt = true
  /// True: playback reports what was heard. False: what was delivered counts as heard.
  public var followsPlayback = true
  /// The session's id; nil: a new one for each session.
  public var session: String?
  /// The session uses the ids reserved for sharing: several sessions take the same data, which is sent once.
  public var isShared = false
  /// Members of `sessionAttributes`, of `chatAttributes`, and of the user data of `EventStart` beside them. They take precedence over what
  /// the other rules say. Objects.
  public var sessionAttributes: JSONValue?, chatAttributes: JSONValue?, eventAttributes: JSONValue?
  /// What fits a packet.
  var room = TuyaFrameRoom()
  /// The agent only recognises speech: no reply is awaited.
  public var onlyASR = false
  /// The formats of replies, in order of wish.
  public var replyFormats: [TuyaReplyFormat] = []
  /// What happens to pictures of the input `image`.
  public var pictures = Pictures.image
  /// Tools that the agent may call; nil: none.
  public var tools: TuyaTools?
  /// The wire continues the user's audio with silence when it has ended, so that the cloud hears the end of speech. False: the event ends.
  public var sendsSilenceAfterEnd = true
  /// True: a dialogue that has ended as intended may be followed by another, on the command `begin`.
  public var waitsAfterEnd = false
  /// Every text document and event is also posted as it came.
  public var postsRaw = false
  /// Backoff, and when to give up.
  public var reconnect: ReconnectPolicy

  /// How long to wait for `refreshAuth` with a new token after the cloud has rejected the old one; 0: not at all.
  public var renew: Nanoseconds = 0
  /// Timeout for a connection with a token, and for a token.
  public var prepare: Nanoseconds = .milliseconds(15_000)
  /// Timeout from a question to its answer, and for a pause within one.
  public var answer: Nanoseconds = .milliseconds(40_000)
  /// Timeout for what has arrived to be played.
  public var playback: Nanoseconds = .milliseconds(300_000)
  /// Timeout for a program to answer the call of a tool.
  public var tool: Nanoseconds = .milliseconds(30_000)
  /// After the end of the user's audio: this long without activity ends the dialogue; 0: never.
  public var linger: Nanoseconds = 0
  /// How long a graph that drains waits for the cloud to hear the end of the user's last words, and for what a program has begun. What is
  /// answered then has the time `answer`.
  public var drain: Nanoseconds = .milliseconds(30_000)

  /// Creates rules with the default times. Duplex has long events, unless said otherwise.
  public init(_ mode: DialogMode, reconnect: ReconnectPolicy) {
    self.mode = mode
    self.reconnect = reconnect
    speech = mode == .duplex ? .long : .single
  }
}

extension TuyaRules {
  /// The user's audio is one event as long as the session.
  var isLong: Bool { mode == .duplex && speech == .long }

  /// The cloud looks for the end of speech.
  var hasVAD: Bool { mode != .pushToTalk && vad }

  /// User data of a new session: `sessionAttributes`, with the formats of replies and whether there are tools.
  var creationData: JSONValue? {
    var attributes: [JSONValue.Member] = []
    if !replyFormats.isEmpty {
      attributes.append(JSONValue.Member("tts.order.supports", .array(replyFormats.map(\.json))))
    }
    if tools != nil { attributes.append(JSONValue.Member("deviceMcp", ["supportCustomMCP": true])) }
    let merged = JSONValue.object(attributes).merging(sessionAttributes)
    return merged.members?.isEmpty == false ? .object([JSONValue.Member("sessionAttributes", merged)]) : nil
  }

  /// User data of an event that begins: `chatAttributes`, and what a program adds for all events and for this one.
  /// - Parameter hasVoice: the user's audio is part of it.
  func startData(hasVoice: Bool, _ more: JSONValue? = nil) -> JSONValue? {
    var attributes: [JSONValue.Member] = []
    if hasVoice {
      attributes.append(JSONValue.Member("asr.enableVad", .bool(hasVAD)))
      if isLong { attributes.append(JSONValue.Member("processing.interrupt", .bool(interrupt))) }
    }
    let chat = JSONValue.object(attributes).merging(chatAttributes)
    let own: JSONValue = chat.members?.isEmpty == false ? ["chatAttributes": chat] : .object([])
    let merged = own.merging(eventAttributes).merging(more)
    return merged.members?.isEmpty == false ? merged : nil
  }

  /// Why a command is refused in every phase; nil: it is not.
  func refusal(of command: DialogCommand) -> String? {
    switch command {
    case .say: "the service speaks no text of its client; send \"ask\" for a question"
    case .refreshAuth(nil): nil
    case .refreshAuth(let token?): token.isEmpty ? "the \"token\" of \"refreshAuth\" is empty" : nil
    case .interrupt, .startSpeech, .stopSpeech, .cancelSpeech, .ask, .update, .begin, .hangUp(nil, _),
      .mute(.audio, _, nil), .mute(.video, _, nil), .extra:
      nil
    case .mute, .setRole, .hangUp, .call, .answerCall, .publish, .subscribe, .data:
      "\"\(command.name)\" is not supported by the service: there is one user, no room and no call"
    }
  }
}

extension JSONValue {
  /// This object with the members of another, which replace those of the same name; objects within are merged in the same way.
  func merging(_ other: JSONValue?) -> JSONValue {
    guard var members, let more = other?.members else {
      return other.flatMap { $0.isNull ? nil : $0 } ?? self
    }
    for member in more {
      guard let index = members.firstIndex(where: { $0.name == member.name }) else {
        members.append(member)
        continue
      }
      let old = members[index].value
      members[index].value =
        old.members != nil && member.value.members != nil
        ? old.merging(member.value) : member.value
    }
    return .object(members)
  }
}
