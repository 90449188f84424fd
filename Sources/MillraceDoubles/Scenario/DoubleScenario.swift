public import MillraceConformance

/// What a double plays: a sequence of turns, and its faults. Read from JSON; `Documentation/doubles.md` lists the members.
///
/// Every service has these members. What a service adds is in `own`, and can be used as if it were declared here:
///
/// ```swift
/// typealias ParrotScenario = DoubleScenario<ParrotMembers, NoMembers>
///
/// var scenario = ParrotScenario()
/// scenario.turns[0].says = "Pretty Polly."
/// scenario.wings = 2                     // a member of ParrotMembers
/// ```
@dynamicMemberLookup
public struct DoubleScenario<Own: ScenarioMembers, OwnTurn: ScenarioMembers>: Sendable, Hashable {
  /// A turn: what the service recognises, and what it answers.
  @dynamicMemberLookup
  public struct Turn: Sendable, Hashable {
    /// The transcript.
    public var hears = "what was said"
    /// The reply text.
    public var says = "This is the answer."
    /// Milliseconds of thinking.
    public var thinks = 200
    /// The fault of this turn, if it has one.
    public var fault: ServiceFault?
    /// What the service adds to a turn.
    public var own = OwnTurn()

    /// Creates a turn with one reply and no fault.
    public init() {}

    /// A member that the service adds to a turn.
    public subscript<Value>(dynamicMember member: WritableKeyPath<OwnTurn, Value>) -> Value {
      get { own[keyPath: member] }
      set { own[keyPath: member] = newValue }
    }
  }

  /// The turns; the last is repeated. Not empty.
  public var turns = [Turn()]
  /// Accepted keys; empty: any.
  public var keys: [String] = []
  /// How many connections are refused before the first is accepted.
  public var refusals = 0
  /// Their HTTP status.
  public var refusalStatus = 503
  /// A fault before the first turn, once: `connecting` or `listening`.
  public var fault: ServiceFault?
  /// Milliseconds from a client's request for a dialogue to its start.
  public var delay = 0
  /// Replies are not speech: each sample is the number of the reply, from 1, and a word lasts 100 ms. For PCM; does not need espeak-ng.
  public var isNumbered = false
  /// How much faster than real time audio is sent.
  public var speed = 4.0
  /// Bytes of an audio message; deliberately not a multiple of anything.
  public var chunk = 1_787
  /// True: a reply that is reported as played before it can have been is a violation.
  public var checksPlayback = false
  /// The espeak-ng voice.
  public var voice = "en"
  /// True: the report keeps every line, the audio sent and the times of images, for tests; false: only numbers, however long the double
  /// runs. Not read from a file.
  public var keeps = true
  /// What the service adds to a scenario.
  public var own = Own()

  /// Creates a scenario with every member at its default.
  public init() {}

  /// A member that the service adds to a scenario.
  public subscript<Value>(dynamicMember member: WritableKeyPath<Own, Value>) -> Value {
    get { own[keyPath: member] }
    set { own[keyPath: member] = newValue }
  }
}

extension DoubleScenario {
  /// A key that no client has.
  private static var unknownKey: String { "sk-of-nobody" }

  /// The scenario of a conformance case: numbered replies, two turns, and the script's fault once.
  public init(_ script: ServiceScript) {
    self.init()
    isNumbered = true
    speed = script.speed
    chunk = script.chunk
    delay = script.delay
    switch script.refusal {
    case .busy(let count)?: refusals = count
    case .key?: keys = [Self.unknownKey]
    case nil: break
    }
    var turn = Turn()
    turn.thinks = 10
    turn.says = Array(repeating: "word", count: max(1, script.replyMilliseconds / 100)).joined(separator: " ")
    turns = [turn, turn]
    guard let fault = script.fault else { return }
    if fault.place.isBeforeTurns { self.fault = fault } else { turns[0].fault = fault }
  }
}
