internal import MillraceDialog

/// A property of every service node in every case.
public struct Invariant: Sendable {
  /// Its name, such as `legalStates`.
  public var name: String
  /// What holds, as a sentence.
  public var text: String
  /// The violations in a record; empty: none.
  public var findings: @Sendable (ServiceRecord, CaseExpectation) -> [String]

  /// Creates an invariant.
  public init(
    _ name: String, _ text: String,
    findings: @escaping @Sendable (ServiceRecord, CaseExpectation) -> [String]
  ) {
    self.name = name
    self.text = text
    self.findings = findings
  }

  /// All invariants, in the order they are checked.
  public static let all: [Invariant] =
    [vocabulary, legalStates, opening, replyEnds, utterances, completeReplies, completeSpeech] + [
      stale, uninterrupted, reported, streams, answers, errors, redactedErrors, recovery, refusal, sessionEnd,
      ending,
      blocks, unknownMessages,
      serviceProtocol,
    ]
}

/// What a case expects of the invariants.
public struct CaseExpectation: Sendable {
  /// The traits of the service.
  public var traits: ServiceTraits
  /// The least number of connections that must be lost and reopened.
  public var losses = 0
  /// True: the node must fail; false: it must not.
  public var fails = false
  /// The most connections allowed; nil: any number.
  public var maxConnections: Int?
  /// True: an error must be reported; false: none may be; nil: either.
  public var expectsErrors: Bool? = false
  /// Replies that must be delivered completely.
  public var completeReplies: Set<Int> = []
  /// True: the user's speech must reach the service completely, except what was said while it was muted.
  public var receivesAllSpeech = false
  /// True: no reply may be interrupted.
  public var forbidsInterruption = false
  /// Names of events that the service must have reported: see `ServiceReport.events`.
  public var reports: Set<String> = []
  /// How many answers to an `id` say that the command failed; those to others say that it was carried out.
  public var failedAnswers: [String: Int] = [:]
  /// The sessions of this case, each of which is closed once.
  public var sessions = 1

  /// Expects no faults, and nothing to be complete.
  public init(_ traits: ServiceTraits) { self.traits = traits }
}
