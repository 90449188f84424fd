internal import MillraceDialog
public import MillraceDoubles
public import MillraceGraph
public import MillraceJSON

/// What the double plays: a sequence of turns, and its faults. Read from JSON; `Documentation/bailian.md` lists every member.
public typealias BailianScenario = DoubleScenario<BailianMembers, BailianTurnMembers>

/// The order of events for a barge-in, which the service's documentation leaves open.
public enum BailianBargeIn: String, Sendable, Hashable, CaseIterable {
  /// RequestAccepted, Listening, SpeechStarted.
  case accepted
  /// Listening, SpeechStarted.
  case listening
  /// SpeechStarted, Listening.
  case speech
  /// RespondingEnded, Listening, SpeechStarted.
  case ended
}

/// What a scenario of Bailian has besides the members of every scenario.
public struct BailianMembers: ScenarioMembers {
  public static let names = ["bargeIn", "early"]

  /// The order of events for a barge-in.
  public var bargeIn = BailianBargeIn.accepted
  /// The first audio messages are sent before the state is Responding, as in the vendor's own log.
  public var isEarly = true
  /// Seconds without audio while listening after which the dialogue is ended with 444: 20, according to the documentation. Not read from
  /// a file.
  public var silence = 20

  /// Every member at its default.
  public init() {}

  public mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "bargeIn": bargeIn = try reader.word(member)
    case "early": isEarly = try reader.bool(member)
    default: return false
    }
    return true
  }
}

/// What a turn of Bailian has besides the members of every turn.
public struct BailianTurnMembers: ScenarioMembers {
  public static let names = ["commands"]

  /// Commands sent with the reply.
  public var commands: [JSONValue] = []

  /// Every member at its default.
  public init() {}

  public mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    guard member.key == "commands" else { return false }
    commands = []
    for command in try reader.list(member) { commands.append(try reader.value(command)) }
    return true
  }
}
