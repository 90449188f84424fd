internal import MillraceConformance
public import MillraceDoubles
public import MillraceGraph
public import MillraceJSON

/// What the double plays: a sequence of turns, and its faults. Read from JSON; `Documentation/ivh.md` lists every member.
public typealias IVHScenario = DoubleScenario<IVHMembers, IVHTurnMembers>

/// What a scenario of IVH has besides the members of every scenario.
public struct IVHMembers: ScenarioMembers {
  public static let names = [
    "preparing", "quota", "opening", "stream", "picture", "width", "height", "pictureEnds", "flash", "clock",
    "failing", "idle",
  ]

  /// Milliseconds in which a session is prepared.
  public var preparing = 0
  /// The most sessions at once; further ones are refused.
  public var quota = 1_000
  /// The opening line, spoken when the session starts; empty: none.
  public var opening = ""
  /// Base address of the stream, without the session's id, such as `rtmp://127.0.0.1:1935/live`; empty: on a server that the double starts.
  public var stream = ""
  /// A talking picture is published there, and what is spoken takes its real time; otherwise nothing is published.
  public var hasPicture = false
  /// The picture's size in pixels.
  public var width = 540, height = 960
  /// Milliseconds after which the picture ends; 0: with the session.
  public var pictureEnds = 0
  /// Replies begin with a flash and a click, to measure how far picture and sound are apart.
  public var flashes = false
  /// Milliseconds without a message after which a channel is closed; 0: never.
  public var idle = 0
  /// Seconds by which the double's clock is ahead.
  public var clock = 0
  /// Requests that fail, each once, in this order.
  public var failing: [Failure] = []

  /// A request over HTTP that fails.
  public struct Failure: Sendable, Hashable {
    /// The operation, such as `statsession`.
    public var operation = ""
    /// The code in the answer; 0: none.
    public var code = 0
    /// The status of the response.
    public var status = 200
    /// Milliseconds before it is answered.
    public var delay = 0
    /// The connection is closed without an answer.
    public var drops = false

    /// The operation of a channel that is opened.
    static let channel = "commandchannel"
    /// Every operation.
    static let operations = [
      channel, "newsession", "createsession", "createsessionbyasset", "startsession", "statsession",
      "closesession", "command", "configsession", "updatesessionconfig", "listsession", "listsessionofuin",
      "listsessionofprojectid", "listsessionofassetvk", "queryconfig",
    ]

    /// No failure yet: it needs an operation.
    public init() {}
  }

  /// Every member at its default.
  public init() {}

  public mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "preparing": preparing = try reader.integer(member, 0...600_000)
    case "quota": quota = try reader.integer(member, 0...100_000)
    case "opening": opening = try reader.text(member)
    case "stream": stream = try address(member, reader)
    case "picture": hasPicture = try reader.bool(member)
    case "width": width = try even(member, reader)
    case "height": height = try even(member, reader)
    case "pictureEnds": pictureEnds = try reader.integer(member, 0...86_400_000)
    case "flash": flashes = try reader.bool(member)
    case "idle": idle = try reader.integer(member, 0...86_400_000)
    case "clock": clock = try reader.integer(member, -86_400...86_400)
    case "failing":
      failing = []
      for node in try reader.list(member) { failing.append(try Failure(node, reader)) }
    default: return false
    }
    return true
  }

  private func address(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> String {
    let address = try reader.text(member)
    guard address.isEmpty || address.hasPrefix("rtmp://") && address.utf8.count > 7 else {
      throw reader.problem(member.value, "\"stream\" is an address such as rtmp://127.0.0.1:1935/live")
    }
    return address
  }

  private func even(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Int {
    let value = try reader.integer(member, 32...1_920)
    guard value % 2 == 0 else {
      throw reader.problem(member.value, "\"\(member.key)\" is an even number of pixels")
    }
    return value
  }
}

extension IVHMembers.Failure {
  fileprivate init(_ node: JSONNode, _ reader: ScenarioReader) throws(ScenarioProblem) {
    for member in try reader.members(node, of: "a failure") {
      switch member.key {
      case "operation":
        operation = try reader.text(member)
        guard Self.operations.contains(operation) else {
          throw reader.problem(
            member.value,
            "there is no operation \"\(operation)\"; they are \(Self.operations.joined(separator: ", "))")
        }
      case "code": code = try reader.integer(member, -1_000_000...1_000_000)
      case "status": status = try reader.integer(member, 200...599)
      case "delay": delay = try reader.integer(member, 0...600_000)
      case "drops": drops = try reader.bool(member)
      default:
        throw reader.unknown(member, of: "a failure", ["operation", "code", "status", "delay", "drops"])
      }
    }
    if operation.isEmpty { throw reader.problem(node, "a failure needs an \"operation\"") }
  }
}

/// What a turn of IVH has besides the members of every turn.
public struct IVHTurnMembers: ScenarioMembers {
  public static let names = [
    "muted", "uninterruptible", "interaction", "scriptOver", "display", "marks", "parts",
    "reasons", "refusesForce",
  ]

  /// The sentence closes the microphone; the sentence is not to be interrupted.
  public var isMuted = false, isUninterruptible = false
  /// `InteractionType` and `InteractionContent`.
  public var interaction: JSONValue?
  /// `ChatStatus` 4.
  public var isScriptOver = false
  /// `TextDisplay` and `TextPro`; empty: as the text.
  public var display = "", marks = ""
  /// The text comes word by word (Type 4); session generation.
  public var comesInParts = false
  /// What the model considered before (Type 5); session generation; empty: nothing.
  public var reasons = ""
  /// A forced interruption of the sentence fails (`InterruptResult` 2); stream generation.
  public var refusesForce = false

  /// Every member at its default.
  public init() {}

  public mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "muted": isMuted = try reader.bool(member)
    case "uninterruptible": isUninterruptible = try reader.bool(member)
    case "interaction": interaction = try reader.value(member.value)
    case "scriptOver": isScriptOver = try reader.bool(member)
    case "display": display = try reader.text(member)
    case "marks": marks = try reader.text(member)
    case "parts": comesInParts = try reader.bool(member)
    case "reasons": reasons = try reader.text(member)
    case "refusesForce": refusesForce = try reader.bool(member)
    default: return false
    }
    return true
  }
}
