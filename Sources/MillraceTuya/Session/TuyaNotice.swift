public import MillraceCore
public import MillraceDialog
public import MillraceJSON

/// A kind of data that a session sends or receives, as the token names it.
public enum TuyaDataKind: String, Sendable, Hashable, CaseIterable {
  /// A channel carries one stream at a time; a picture, a file and a text are short streams.
  case video, audio, image, file, text
}

/// What a token allows, besides its text, which the session never sees.
public struct TuyaTerms: Sendable, Hashable {
  /// The business code of the session (attribute 41).
  public var bizCode: UInt32
  /// The business tag of the session (attribute 42).
  public var bizTag: UInt64
  /// What the agent takes, in the order of its channels; a kind may be there several times.
  public var sends: [TuyaDataKind]
  /// What the agent gives, in the order of its channels.
  public var receives: [TuyaDataKind]

  /// Creates terms; by default those of a voice agent. Source of the code 65,537: the default of the vendor's client for TCP.
  public init(
    bizCode: UInt32 = 65_537, bizTag: UInt64 = 0, sends: [TuyaDataKind] = [.audio, .text, .image],
    receives: [TuyaDataKind] = [.audio, .text]
  ) {
    self.bizCode = bizCode
    self.bizTag = bizTag
    self.sends = sends
    self.receives = receives
  }
}

/// What a session learns from its connection.
public enum TuyaNotice: Sendable, Hashable {
  /// The connection is authenticated, under this id, and there is a token with these terms. The first notice of a wire.
  case connected(id: String, TuyaTerms)
  /// A token was asked for with a number, and is there.
  case token(TuyaTerms, to: Int)
  /// A token was asked for with a number, and there is none.
  case tokenFailed(TuyaTokenProblem, to: Int)
  /// The token expires in this many nanoseconds; a new one has been asked for.
  case tokenWillExpire(in: Nanoseconds)
  /// The token has expired.
  case tokenExpired
  /// The cloud answered the creation of the session, which it seldom does.
  case sessionAnswered(TuyaStatus)
  /// The cloud closed the session.
  case sessionClosed(TuyaStatus)
  /// The state of the session changed; 1001: its token has expired.
  case sessionState(TuyaStatus)
  /// The cloud will close the connection some time after the last packet of use.
  case willDisconnect
  /// An event of the session.
  case event(TuyaCloudEvent)
  /// A stream of the session begins, such as the sound of a reply; its bytes follow as `ServiceInput.audio` or `.image`.
  case streamBegan(TuyaStreamStart)
  /// It has ended.
  case streamEnded(TuyaDataKind)
  /// A text document. Its packets do not say which event they belong to; its `bizID` may.
  case text(TuyaText)
  /// A text that is not a valid document: what is wrong with it, without its content.
  case unreadableText(String)
  /// A file was received, and stored at this path.
  case file(path: String, name: String?, kind: TuyaDataKind)
  /// A file or an image is under way. Of one that is sent, `command` is the number of its call, in digits: the session replaces it.
  case progress(DialogProgress)
  /// An image or a file was sent completely: the call with this number.
  case sent(call: Int)
  /// A request could not be carried out: which, and why, with the vendor's code.
  case failed(DialogError, call: Int)
  /// A packet of a kind that is not known.
  case unknown(JSONValue)
}

/// Why there is no token.
public struct TuyaTokenProblem: Error, Sendable, Hashable {
  /// What failed, and the cure.
  public var text: String
  /// True: asking again would not help.
  public var isFinal: Bool

  /// Creates a problem.
  public init(_ text: String, isFinal: Bool) {
    self.text = text
    self.isFinal = isFinal
  }
}

/// An event packet of the cloud.
public struct TuyaCloudEvent: Sendable, Hashable {
  /// Its type.
  public var type: TuyaEventType
  /// The event's id; the session's own, with a suffix in a long event. Empty: none.
  public var id: String
  /// The cloud's time in milliseconds since 1970; nil: not said.
  public var time: UInt64?
  /// Its data, where it is JSON.
  public var data: JSONValue?
  /// Its user data: the members of all attributes.
  public var userData: JSONValue?

  /// Creates an event.
  public init(
    _ type: TuyaEventType, id: String, time: UInt64? = nil, data: JSONValue? = nil,
    userData: JSONValue? = nil
  ) {
    self.type = type
    self.id = id
    self.time = time
    self.data = data
    self.userData = userData
  }
}

/// The beginning of a stream of the cloud.
public enum TuyaStreamStart: Sendable, Hashable {
  /// The sound of a reply, in this format.
  case audio(TuyaAudioParameters)
  /// An image; the bytes that follow are one.
  case image(TuyaImageParameters)
  /// A video.
  case video(TuyaVideoParameters)
}
