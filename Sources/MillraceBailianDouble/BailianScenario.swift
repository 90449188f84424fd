internal import MillraceDialog
public import MillraceJSON

/// What a double plays: a sequence of turns, and its faults. Read from JSON; `Documentation/bailian.md` lists every member.
public struct BailianScenario: Sendable, Hashable {
  /// A turn: what the service recognises, and what it answers.
  public struct Turn: Sendable, Hashable {
    /// The transcript.
    public var hears = "what was said"
    /// The reply text.
    public var says = "This is the answer."
    /// Milliseconds of thinking.
    public var thinks = 200
    /// Commands sent with the reply.
    public var commands: [JSONValue] = []
    /// The fault of this turn, if it has one.
    public var fault: Fault?

    /// Creates a turn with one reply and no fault.
    public init() {}
  }

  /// A fault.
  public struct Fault: Sendable, Hashable {
    /// The kind of fault.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// Closes the connection without a close frame.
      case drop
      /// Neither sends nor receives anything more.
      case stall
      /// Stays at this point; heartbeats and requests are answered.
      case hold
      /// Sends a text message that is not JSON.
      case malformed
      /// Sends an unknown event.
      case unknown
      /// Sends a text message of 2 MiB.
      case oversized
      /// Sends the event `Error`, which is not fatal.
      case error
      /// Sends `task-failed`, which is fatal.
      case fail
      /// Sends every event of the turn twice.
      case repeated
      /// Sends RespondingContent and RespondingStarted before Responding, and RespondingEnded before the last audio.
      case outOfOrder
      /// Ends the dialogue: Stopped, task-finished, close frame.
      case kick
      /// Closes the connection, and rejects every key from then on.
      case expire
    }
    /// Where it happens.
    public enum Place: String, Sendable, Hashable, CaseIterable {
      /// After Start.
      case connecting
      /// After the first Listening.
      case listening
      /// While thinking; when the audio of the reply begins.
      case thinking, responding
      /// After half of the reply's audio was sent.
      case midway
      /// After all of it was sent.
      case answered
    }

    /// The kind of fault.
    public var kind: Kind
    /// Where it happens.
    public var place = Place.responding
    /// For `error`: the vendor's code.
    public var code = 500
    /// For `error` and `fail`: the vendor's name.
    public var name = "InternalLLMError"
    /// Creates a fault at the beginning of a reply.
    public init(_ kind: Kind) { self.kind = kind }
    /// Creates a fault at a place.
    public init(_ kind: Kind, at place: Place) {
      self.kind = kind
      self.place = place
    }
  }

  /// The order of events for a barge-in, which the documentation leaves open.
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

  /// The turns; the last is repeated.
  public var turns = [Turn()]
  /// The order of events for a barge-in.
  public var bargeIn = BargeIn.accepted
  /// Accepted keys; empty: any.
  public var keys: [String] = []
  /// How many connections are refused before the first is accepted.
  public var refusals = 0
  /// Their HTTP status.
  public var refusalStatus = 503
  /// A fault before the first turn, once: `connecting` or `listening`.
  public var fault: Fault?
  /// Milliseconds from Start to Started.
  public var delay = 0
  /// Replies are not speech: each sample is the number of the reply, from 1, and a word lasts 100 ms. For PCM; does not need
  /// espeak-ng.
  public var isNumbered = false
  /// How much faster than real time audio is sent.
  public var speed = 4.0
  /// Bytes of an audio message; deliberately not a multiple of anything.
  public var chunk = 1_787
  /// The first audio messages are sent before the state is Responding, as in the vendor's own log.
  public var isEarly = true
  /// True: a reply that is reported as played before it can have been is a violation.
  public var checksPlayback = false
  /// Seconds without audio while listening after which the dialogue is ended with 444: 20, according to the documentation.
  public var silence = 20
  /// True: the report keeps every line, the audio sent and the times of images, for tests; false: only numbers, however long the double
  /// runs.
  public var keeps = true
  /// The espeak-ng voice.
  public var voice = "en"

  /// Creates a scenario with every member at its default.
  public init() {}
}
