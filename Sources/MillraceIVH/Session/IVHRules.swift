public import MillraceCore
public import MillraceDialog

/// An input of a session.
public typealias IVHInput = ServiceInput<IVHMessage>
/// An action a session asks for.
public typealias IVHAction = ServiceAction<IVHRequest>

/// What arrives from the service, over HTTP or over the channel.
public enum IVHMessage: Sendable, Hashable {
  /// A request was answered.
  case answer(IVHAnswer, to: Int)
  /// The service refused a request.
  case refused(IVHFault, to: Int)
  /// A request had no answer.
  case failed(DialogError, to: Int)
  /// The channel is open.
  case channelOpened
  /// The channel was lost, or could not be opened.
  case channelLost(DialogError)
  /// A message of the channel.
  case push(IVHPush)
}

/// What is sent to the service.
public enum IVHRequest: Sendable, Hashable {
  /// A request over HTTP; its answer has the same number.
  case call(IVHCall, Int)
  /// Opens the command channel of a session; voice belongs to it from then on.
  case openChannel(String)
  /// Closes the channel.
  case closeChannel
  /// A frame of the channel.
  case command(IVHCommand)
  /// What follows of the voice is a new utterance: the service has ended the one before.
  case beginVoice
  /// Ends the utterance of voice. `isCut`: the rest of it is not spoken.
  case endVoice(isCut: Bool)
}

/// The rules of a session.
public struct IVHRules: Sendable, Hashable {
  /// When the session is started, after which the avatar speaks its opening line.
  public enum Start: String, Sendable, Hashable, CaseIterable {
    /// When the first picture is shown.
    case firstPicture
    /// As soon as the session is active.
    case now
    /// Never: in the stream generation the service starts by itself, 10 s after the creation.
    case never
  }

  /// How the user's voice reaches the service.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// All of it, whenever the service may take it.
    case duplex
    /// Between `startSpeech` and `stopSpeech`.
    case pushToTalk
  }

  /// Which of the two interfaces is spoken.
  public var generation: IVHGeneration
  /// What a session is created with.
  public var creation: IVHCreation
  /// Backoff, and when to give up.
  public var reconnect: ReconnectPolicy
  /// When the session is started.
  public var start = Start.firstPicture
  /// How the user's voice reaches the service.
  public var mode = Mode.duplex
  /// Texts go over HTTP, not over the channel.
  public var sendsTextsByHTTP = false
  /// The voice is a bot's reply: none of it is dropped.
  public var isBotReply = false
  /// True: playback reports what was heard. False: what the service has finished counts as heard.
  public var followsPlayback = true
  /// Every message of the channel is also posted as it came.
  public var postsRaw = false
  /// True: a session that has ended as intended may be followed by another, on the command `begin`.
  public var waitsAfterEnd = false

  /// Interval of heartbeats. Within every bound that the vendor's documents state: 30 s to 60 s.
  public var heartBeat: Nanoseconds = .milliseconds(45_000)
  /// Interval at which the state of a new session is asked for.
  public var poll: Nanoseconds = .milliseconds(1_000)
  /// Timeout for preparing a session; the vendor states up to two minutes.
  public var prepare: Nanoseconds = .milliseconds(150_000)
  /// Timeout for the first picture; the session then starts without it.
  public var picture: Nanoseconds = .milliseconds(15_000)
  /// Timeout for the answer to a request, and for the channel to open.
  public var answer: Nanoseconds = .milliseconds(10_000)
  /// After the end of the user's audio, this long in silence ends the session; 0: never.
  public var linger: Nanoseconds = 0
  /// Least time between two texts. The session generation requires more than a second.
  public var textGap: Nanoseconds = 0
  /// Timeout from a text or voice to its start, and from an interruption to the end it causes.
  public var reaction: Nanoseconds = .milliseconds(40_000)
  /// Timeout for a sentence or an utterance to be spoken, and to be played.
  public var playback: Nanoseconds = .milliseconds(300_000)
  /// How far the stream may be behind the service, where something of the reply was heard already: nothing more comes after that. The
  /// vendor states 1 to 3 s for RTMP.
  public var lag: Nanoseconds = .milliseconds(3_000)
  /// The same where nothing of the reply was heard yet: it may have no sound.
  public var silence: Nanoseconds = .milliseconds(6_000)
  /// When the end of the session is requested again that the service has refused for now.
  public var closeAgain: Nanoseconds = .milliseconds(1_000)
  /// Timeout for the answer to the end of the session.
  public var close: Nanoseconds = .milliseconds(2_000)

  /// Creates rules with the default times of a generation.
  public init(_ generation: IVHGeneration, _ creation: IVHCreation, reconnect: ReconnectPolicy) {
    self.generation = generation
    self.creation = creation
    self.reconnect = reconnect
    if generation == .session { textGap = .milliseconds(1_050) }
  }
}
