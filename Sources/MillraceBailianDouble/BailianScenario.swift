public import MillraceDialog

/// What a double plays: turns one after the other, and where it misbehaves. Read from JSON; `Documentation/bailian.md` has every
/// member.
public struct BailianScenario: Sendable, Hashable {
  /// One turn: what the service makes of what it hears, and what it answers.
  public struct Turn: Sendable, Hashable {
    /// What was said, as recognition tells it.
    public var hears = "what was said"
    /// What is answered.
    public var says = "This is the answer."
    /// Milliseconds of thinking.
    public var thinks = 200
    /// Commands that go with the answer.
    public var commands: [JSONValue] = []
    public var fault: Fault?

    /// The usual: one answer, nothing goes wrong.
    public init() {}
  }

  /// Something that goes wrong.
  public struct Fault: Sendable, Hashable {
    /// What can go wrong.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// The connection is gone without a good-bye.
      case drop
      /// Nothing more is said or heard.
      case stall
      /// It goes no further from here; heartbeats and requests are answered.
      case hold
      /// A text that is no JSON.
      case malformed
      /// An event nobody knows.
      case unknown
      /// A text of 2 MiB.
      case oversized
      /// The event `Error`, which passes.
      case error
      /// `task-failed`, which does not.
      case fail
      /// Every event of the turn twice.
      case repeated
      /// RespondingContent and RespondingStarted before Responding, and RespondingEnded before the last sound.
      case outOfOrder
      /// The dialogue is ended: Stopped, task-finished, close.
      case kick
      /// The connection is gone, and keys are no longer good.
      case expire
    }
    /// Where it can.
    public enum Place: String, Sendable, Hashable, CaseIterable {
      /// Start has come.
      case connecting
      /// The first Listening was told.
      case listening
      /// The answer is being made; its sound begins.
      case thinking, responding
      /// Half of the reply's sound has been sent.
      case midway
      /// All of it has been sent.
      case answered
    }

    /// What goes wrong.
    public var kind: Kind
    /// Where in the turn.
    public var place = Place.responding
    /// Of `error`: the vendor's number.
    public var code = 500
    /// Of `error` and `fail`: the vendor's name.
    public var name = "InternalLLMError"
    /// A fault while the answer begins.
    public init(_ kind: Kind) { self.kind = kind }
    /// A fault at a place.
    public init(_ kind: Kind, at place: Place) {
      self.kind = kind
      self.place = place
    }
  }

  /// In which order a voice over a reply is told: the documents leave it open.
  public enum BargeIn: String, Sendable, Hashable, CaseIterable {
    /// RequestAccepted, Listening, SpeechStarted.
    case accepted
    /// Listening, SpeechStarted.
    case listening
    /// SpeechStarted, Listening.
    case speech
    /// RespondingEnded, Listening, SpeechStarted.
    case ended
  }

  /// One after the other; the last is repeated.
  public var turns = [Turn()]
  /// Which comes first when a voice cuts a reply off.
  public var bargeIn = BargeIn.accepted
  /// Keys that are let in; empty: any.
  public var keys: [String] = []
  /// Visits that are refused, with this status, before the first is let in.
  public var refusals = 0
  /// The status of HTTP they get.
  public var refusalStatus = 503
  /// What goes wrong before the first turn, once: `connecting` or `listening`.
  public var fault: Fault?
  /// Milliseconds from Start to Started.
  public var delay = 0
  /// Replies are no speech: each sample is the number of the reply, from 1, and a word lasts 100 ms. For PCM; needs no
  /// espeak-ng.
  public var isNumbered = false
  /// How much faster than it is spoken sound is sent.
  public var speed = 4.0
  /// Bytes of a frame of sound: on purpose no whole number of anything.
  public var chunk = 1_787
  /// The first frames of sound go before the state is Responding, as the vendor's own log shows.
  public var isEarly = true
  /// True: a reply that is said to be heard before it can have been is a violation.
  public var checksPlayback = false
  /// Seconds without sound while it listens after which the dialogue is ended with 444: 20, as the vendor's documents say.
  public var silence = 20
  /// True: the report holds every line, the sound that was sent and when pictures came, for tests; false: only numbers, however long
  /// the double runs.
  public var keeps = true
  /// espeak-ng's voice.
  public var voice = "en"

  public init() {}
}
