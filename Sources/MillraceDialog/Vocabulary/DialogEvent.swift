public import MillraceJSON

/// An event of a dialogue, in a form that is the same for every service. `Documentation/dialog.md` lists each vendor's messages beside
/// them.
///
/// No message is lost: a known one without a common form is `extra` under the vendor's name, and an unknown one is `unknown`.
public enum DialogEvent: Sendable, Hashable {
  /// The connection, the login and everything else before a dialogue are complete.
  case connected
  /// The dialogue began; its id can resume it later.
  case conversationStarted(id: String)
  /// The state of the dialogue changed.
  case state(DialogState)
  /// The service detected that the user started speaking.
  case speechStarted
  /// The service detected that the user stopped speaking.
  case speechEnded
  /// What the user said so far; replaces the transcript before. Final when it will not change.
  case transcript(text: String, isFinal: Bool)
  /// Reply text.
  case reply(DialogReply)
  /// The audio of a reply begins to arrive.
  case replyStarted(round: String?)
  /// A reply has arrived completely, with this many utterances of audio, possibly 0. It may still be playing.
  case replyEnded(round: String?, utterances: Int)
  /// A reply was interrupted.
  case interrupted(by: InterruptionSource)
  /// The service asks this side for an action.
  case command(name: String, payload: JSONValue)
  /// Something to display.
  case media(DialogMedia)
  /// Emotions to show during a reply.
  case emotion([DialogEmotion])
  /// A gate opens or closes.
  case gate(DialogGate, isOn: Bool)
  /// Resources used: tokens, characters, seconds, under the vendor's names.
  case usage(JSONValue)
  /// A time measured by the service or the node.
  case latency(name: String, milliseconds: Double)
  /// The credentials expire soon; in how many milliseconds, if known.
  case authWillExpire(inMilliseconds: Int?)
  /// The credentials have expired.
  case authExpired
  /// This client was removed.
  case kicked(KickReason, text: String)
  /// Another participant in the room or at the other end.
  case peer(DialogPeer)
  /// Network quality, from 0 (best) upwards; of a peer, or (nil) of this client.
  case netQuality(index: Double, grade: NetGrade, peer: String?)
  /// An error.
  case error(DialogError)
  /// A known message without a common form, under the vendor's name.
  case extra(name: String, payload: JSONValue)
  /// An unknown message.
  case unknown(JSONValue)
  /// What came of a command that had an `id`.
  case answer(DialogAnswer)
}

/// Part of the text of a reply.
public struct DialogReply: Sendable, Hashable {
  /// How it combines with the text before it in the same round.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// Appended to it.
    case append
    /// Replaces it.
    case replace
  }

  /// The text to display.
  public var text: String
  /// The text that is spoken, where it differs.
  public var spoken: String?
  /// True: the text will not change.
  public var isFinal: Bool
  /// How it combines with the text before it.
  public var mode: Mode
  /// The vendor's id of the reply; groups its parts.
  public var round: String?

  /// Creates a part of a reply.
  public init(text: String, spoken: String? = nil, isFinal: Bool, mode: Mode, round: String? = nil) {
    self.text = text
    self.spoken = spoken
    self.isFinal = isFinal
    self.mode = mode
    self.round = round
  }
}

/// Something to display during a reply.
public struct DialogMedia: Sendable, Hashable {
  /// The kind of content.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An image, a video, a window with text, a choice, suggested questions.
    case image, video, popup, options, suggestions
  }

  /// The kind of content.
  public var kind: Kind
  /// The URL of an image or video.
  public var url: String?
  /// A title.
  public var title: String?
  /// The text to display.
  public var text: String?
  /// The choices or suggested questions.
  public var options: [String]
  /// The vendor's message, for what the members above do not cover (a style, a button label).
  public var detail: JSONValue?

  /// Creates content to display.
  public init(
    _ kind: Kind, url: String? = nil, title: String? = nil, text: String? = nil, options: [String] = [],
    detail: JSONValue? = nil
  ) {
    self.kind = kind
    self.url = url
    self.title = title
    self.text = text
    self.options = options
    self.detail = detail
  }
}

/// An emotion, shown from one time of a reply to another.
public struct DialogEmotion: Sendable, Hashable {
  /// The vendor's name of the emotion.
  public var name: String
  /// From the reply's first sample.
  public var startMilliseconds: Int
  /// Nil: to the end.
  public var endMilliseconds: Int?

  /// Creates an emotion; times in milliseconds.
  public init(_ name: String, startMilliseconds: Int, endMilliseconds: Int? = nil) {
    self.name = name
    self.startMilliseconds = startMilliseconds
    self.endMilliseconds = endMilliseconds
  }
}

/// What a service may temporarily block.
public enum DialogGate: String, Sendable, Hashable, CaseIterable {
  /// The microphone: its audio is not to be sent.
  case muted
  /// Barge-in: a voice must not interrupt the reply.
  case uninterruptible
}

/// Why this client was removed.
public enum KickReason: String, Sendable, Hashable, CaseIterable {
  /// The same user connected elsewhere; reconnecting would remove that client.
  case replaced
  /// Another participant removed this client.
  case removed
  /// The room or call has ended.
  case ended
  /// Any other reason.
  case other
}

/// Another participant in the room.
public struct DialogPeer: Sendable, Hashable {
  /// What changed.
  public enum Change: String, Sendable, Hashable, CaseIterable {
    /// Joined or left.
    case joined, left
    /// What the participant sends: see `sendsAudio` and `sendsVideo`.
    case tracks
  }

  /// The vendor's id of the participant.
  public var id: String
  /// What changed.
  public var change: Change
  /// True: sends audio; nil: unknown.
  public var sendsAudio: Bool?
  /// True: sends video; nil: unknown.
  public var sendsVideo: Bool?
  /// Why the participant left, in the vendor's words.
  public var reason: String?

  /// Creates a change of a participant.
  public init(
    _ id: String, _ change: Change, sendsAudio: Bool? = nil, sendsVideo: Bool? = nil, reason: String? = nil
  ) {
    self.id = id
    self.change = change
    self.sendsAudio = sendsAudio
    self.sendsVideo = sendsVideo
    self.reason = reason
  }
}

/// Network quality.
public enum NetGrade: String, Sendable, Hashable, CaseIterable {
  /// From best to worst; the vendors' scales are mapped to these.
  case excellent, good, poor, veryPoor
}
