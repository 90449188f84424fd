public import MillraceConformance
public import MillraceDialog
public import MillraceNet

/// How a double is started.
public struct DoubleOptions: Sendable {
  /// Where its scenario comes from.
  public enum Scenario: Sendable, Hashable {
    /// One short reply to everything.
    case standard
    /// A few replies for somebody who tries a dialogue out.
    case conversation
    /// A file's text, and its name in messages.
    case text(String, name: String)
  }

  /// The scenario to play.
  public var scenario = Scenario.standard
  /// The port; 0: the system chooses a free one.
  public var port = 0
  /// The certificate for TLS; nil: plaintext.
  public var identity: NetIdentity?
  /// True: the report keeps everything, for a short run; false: only numbers, however long the double runs.
  public var keeps = false
  /// Observes the audio.
  public var observer = AudioObserver()
  /// Receives each line of the report as it is written, on the network thread.
  public var watch: @Sendable (String) -> Void = { _ in }

  /// The standard scenario, on any free port.
  public init() {}

  /// The scenario, with the members of a service.
  /// - Parameters:
  ///   - faults: the faults that the double can perform, and where: a file with others is rejected. nil: any.
  ///   - kickReasons: the reasons that the double can state when it removes a client: a file with others is rejected. nil: any.
  /// - Throws: what is wrong with the file. A voice of its own is tried out, unless replies are numbered: tens of milliseconds.
  public func load<Own, OwnTurn>(
    faults: [ServiceFault.Kind: Set<ServiceFault.Place>]? = nil, kickReasons: Set<KickReason>? = nil
  ) throws(DoubleProblem) -> DoubleScenario<Own, OwnTurn> {
    var made: DoubleScenario<Own, OwnTurn>
    switch scenario {
    case .standard: made = DoubleScenario()
    case .conversation: made = .conversation
    case .text(let text, let name):
      do throws(ScenarioProblem) {
        made = try DoubleScenario(parsing: text, name: name, faults: faults, kickReasons: kickReasons)
      } catch {
        throw .scenario(error)
      }
      // Found out now: during a reply it would only be a failure of the service.
      let isUsual = made.voice == DoubleScenario<Own, OwnTurn>().voice
      if !made.isNumbered, !isUsual, let problem = SpeechSynthesizer.problem(voice: made.voice) {
        throw .other("\(name): \(problem)")
      }
    }
    made.keeps = keeps
    return made
  }
}

/// Why a double does not start.
public enum DoubleProblem: Error, Sendable, CustomStringConvertible {
  /// Its scenario is not valid.
  case scenario(ScenarioProblem)
  /// It cannot listen.
  case listening(NetError)
  /// Something else, and the cure.
  case other(String)

  public var description: String {
    switch self {
    case .scenario(let problem): problem.description
    case .listening(let error): error.description
    case .other(let text): text
    }
  }
}

extension DoubleScenario {
  /// What `talk --double` plays without a scenario.
  static var conversation: DoubleScenario {
    var scenario = DoubleScenario()
    scenario.checksPlayback = true
    scenario.turns = [
      "Hello. I am the double of the service. I hear that you speak, but not what you say.",
      "Speak while I am speaking, and I will stop. Try it now: I will keep talking for a while, so you have time. One, two, three, four, five, six, seven, eight, nine, ten.",
      "That is all I can say. With an account and a key, the real service answers you.",
    ].map { text in
      var turn = Turn()
      turn.hears = "(something)"
      turn.says = text
      return turn
    }
    return scenario
  }
}
