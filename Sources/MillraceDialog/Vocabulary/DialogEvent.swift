/// Something that happened in a dialogue, in words that hold for every service. `Documentation/dialog.md` has each vendor's words
/// beside them.
///
/// Nothing a service says is lost: what has no common word is `extra` under the vendor's own name, and what nobody knows is
/// `unknown`.
public enum DialogEvent: Sendable, Hashable {
  /// The connection, the login and whatever comes before a dialogue are done.
  case connected
  /// The dialogue has begun; its id continues it later.
  case conversationStarted(id: String)
  /// The dialogue is in another state.
  case state(DialogState)
  /// The service hears the user speak.
  case speechStarted
  /// The service has heard the user stop.
  case speechEnded
  /// What the user said: the whole of it so far, in place of what came before; final when nothing will change.
  case transcript(text: String, isFinal: Bool)
  /// What is answered.
  case reply(DialogReply)
  /// The sound of an answer begins to come.
  case replyStarted(round: String?)
  /// All of an answer has come, in so many utterances of sound; 0: it has none. It may still be playing.
  case replyEnded(round: String?, utterances: Int)
  /// An answer will not go on.
  case interrupted(by: InterruptionSource)
  /// The service asks this side to do something.
  case command(name: String, payload: JSONValue)
  /// Something to be shown.
  case media(DialogMedia)
  /// Feelings to show along with a reply.
  case emotion([DialogEmotion])
  /// A gate opens or closes.
  case gate(DialogGate, isOn: Bool)
  /// What was used: tokens, characters, seconds, under the vendor's names.
  case usage(JSONValue)
  /// A time the service or the node measured.
  case latency(name: String, milliseconds: Double)
  /// The credentials end soon; in how many milliseconds, where it is told.
  case authWillExpire(inMilliseconds: Int?)
  /// The credentials have ended.
  case authExpired
  /// This side was put out.
  case kicked(KickReason, text: String)
  /// Somebody else in the room or at the other end.
  case peer(DialogPeer)
  /// The network, from 0 (best) upwards; of a peer, or (nil) of this side.
  case netQuality(index: Double, grade: NetGrade, peer: String?)
  /// Something failed.
  case error(DialogError)
  /// Known, but with no common word: under the vendor's own name.
  case extra(name: String, payload: JSONValue)
  /// Nobody knows what it is.
  case unknown(JSONValue)
}

/// A piece of an answer in words.
public struct DialogReply: Sendable, Hashable {
  /// How a piece joins what came before it in the same round.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// Behind it.
    case append
    /// In its place.
    case replace
  }

  /// To be shown.
  public var text: String
  /// To be heard, where that is something else.
  public var spoken: String?
  /// True: the words will not change any more.
  public var isFinal: Bool
  /// Where the words belong, beside those before.
  public var mode: Mode
  /// What belongs together: the vendor's id of the answer.
  public var round: String?

  /// A piece of an answer.
  public init(text: String, spoken: String? = nil, isFinal: Bool, mode: Mode, round: String? = nil) {
    self.text = text
    self.spoken = spoken
    self.isFinal = isFinal
    self.mode = mode
    self.round = round
  }
}

/// Something to be shown beside what is said.
public struct DialogMedia: Sendable, Hashable {
  /// What it is.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A picture, a film, a window of words, things to choose from, things to ask.
    case image, video, popup, options, suggestions
  }

  /// What is to be shown.
  public var kind: Kind
  /// Of a picture or film.
  public var url: String?
  /// A heading.
  public var title: String?
  /// Words to be shown.
  public var text: String?
  /// To choose from, or things to ask.
  public var options: [String]
  /// As the vendor sent it, for what has no place above (a style, a button's word).
  public var detail: JSONValue?

  /// Something to be shown; what is left out it does not have.
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

/// A feeling shown from one time of a reply to another.
public struct DialogEmotion: Sendable, Hashable {
  /// The vendor's word for the feeling.
  public var name: String
  /// From the reply's first sample.
  public var startMilliseconds: Int
  /// nil: to the end.
  public var endMilliseconds: Int?

  /// A feeling from one time of the reply to another, in milliseconds.
  public init(_ name: String, startMilliseconds: Int, endMilliseconds: Int? = nil) {
    self.name = name
    self.startMilliseconds = startMilliseconds
    self.endMilliseconds = endMilliseconds
  }
}

/// What a service may close for a while.
public enum DialogGate: String, Sendable, Hashable, CaseIterable {
  /// The microphone is not to be sent.
  case muted
  /// What is said must not be cut off by a voice.
  case uninterruptible
}

/// Why this side was put out.
public enum KickReason: String, Sendable, Hashable, CaseIterable {
  /// The same user came in elsewhere: coming back would put that one out.
  case replaced
  /// Somebody put this side out.
  case removed
  /// The room or call is over.
  case ended
  /// Something else.
  case other
}

/// Somebody else in the room.
public struct DialogPeer: Sendable, Hashable {
  /// What became of them.
  public enum Change: String, Sendable, Hashable, CaseIterable {
    /// They came, or went.
    case joined, left
    /// What they send has changed: see `sendsAudio` and `sendsVideo`.
    case tracks
  }

  /// Who: the vendor's id.
  public var id: String
  /// What became of them.
  public var change: Change
  /// True: they send sound; nil: not told.
  public var sendsAudio: Bool?
  /// True: they send pictures; nil: not told.
  public var sendsVideo: Bool?
  /// Why they left, in the vendor's words.
  public var reason: String?

  /// News of a peer.
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

/// How good a network is.
public enum NetGrade: String, Sendable, Hashable, CaseIterable {
  /// From the best to the worst; vendors' numbers are sorted into these.
  case excellent, good, poor, veryPoor
}
