internal import MillraceDialog

/// Something that holds for every service node in every case.
public struct Invariant: Sendable {
  /// A word for it, such as `legalStates`.
  public var name: String
  /// What holds, as a sentence.
  public var text: String
  /// What is amiss in a record, in words; empty: nothing.
  public var findings: @Sendable (ServiceRecord, CaseExpectation) -> [String]

  /// An invariant by its name, its sentence and what finds where it does not hold.
  public init(
    _ name: String, _ text: String,
    findings: @escaping @Sendable (ServiceRecord, CaseExpectation) -> [String]
  ) {
    self.name = name
    self.text = text
    self.findings = findings
  }

  /// All of them, in the order they are looked at.
  public static let all: [Invariant] =
    [legible, legalStates, beginnings, replyEnds, utterances, wholeSound, wholeVoice] + [
      stale, errors, silentErrors, recovery, refusal, goodBye, ending, blocks, nothingLost, obedience,
    ]
}

/// What a case makes of the invariants.
public struct CaseExpectation: Sendable {
  /// Of the service.
  public var traits: ServiceTraits
  /// Connections that have to be lost and be made again, at least.
  public var losses = 0
  /// True: the node has to fail; false: it must not.
  public var fails = false
  /// Visits at most; nil: any number.
  public var mostVisits: Int?
  /// True: an error is due; false: there must be none; nil: there may be.
  public var errs: Bool? = false
  /// Replies whose every byte has to have come out.
  public var wholeReplies: Set<Int> = []
  /// True: all that the user says has to have come to the service.
  public var hearsAll = false

  /// Nothing goes wrong, and nothing has to be whole.
  public init(_ traits: ServiceTraits) { self.traits = traits }
}
