public import MillraceDialog

/// What a double plays: turns one after the other, and where it misbehaves. Read from JSON; `Documentation/bailian.md` has every
/// member.
public struct BailianScenario: Sendable, Hashable {
  /// One turn: what the service makes of what it hears, and what it answers.
  public struct Turn: Sendable, Hashable {
    /// What was said, as recognition tells it.
    public var hears = "what was said"
    public var says = "This is the answer."
    /// Milliseconds of thinking.
    public var thinks = 200
    /// Commands that go with the answer.
    public var commands: [JSONValue] = []
    public var fault: Fault?

    public init() {}
  }

  /// Something that goes wrong.
  public struct Fault: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// The connection is gone without a good-bye.
      case drop
      /// Nothing more is said or heard.
      case stall
      /// A text that is no JSON.
      case malformed
      /// An event nobody knows.
      case unknown
      /// The event `Error`, which passes.
      case error
      /// `task-failed`, which does not.
      case fail
      /// Every event twice.
      case repeated
    }
    public enum Place: String, Sendable, Hashable, CaseIterable {
      case thinking, responding, answered
    }

    public var kind: Kind
    public var place = Place.responding
    public var code = 500
    public var name = "InternalLLMError"
    public init(_ kind: Kind) { self.kind = kind }
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
  public var bargeIn = BargeIn.accepted
  /// Keys that are let in; empty: any.
  public var keys: [String] = []
  /// Visits that are refused, with this status, before the first is let in.
  public var refusals = 0
  public var refusalStatus = 503
  /// How much faster than it is spoken sound is sent.
  public var speed = 4.0
  /// Bytes of a frame of sound: on purpose no whole number of anything.
  public var chunk = 1_787
  /// The first frames of sound go before the state is Responding, as the vendor's own log shows.
  public var isEarly = true
  /// True: a reply that is said to be heard before it can have been is a violation.
  public var checksPlayback = false
  /// True: the report holds every line, the sound that was sent and when pictures came, for tests; false: only numbers, however long
  /// the double runs.
  public var keeps = true
  /// espeak-ng's voice.
  public var voice = "en"

  public init() {}
}

/// Why a scenario cannot be read.
public struct ScenarioProblem: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
}

extension BailianScenario {
  /// Reads a scenario; every member may be left out, and one nobody knows is refused.
  public init(parsing text: String) throws(ScenarioProblem) {
    self.init()
    let json: JSONValue
    do { json = try JSONValue(parsing: text) } catch { throw ScenarioProblem(description: "\(error)") }
    guard let members = json.members else { throw ScenarioProblem(description: "an object is due") }
    for member in members {
      let value = member.value
      switch member.name {
      case "turns":
        var turns: [Turn] = []
        for turn in try Self.list(value, "turns") { turns.append(try Turn(turn)) }
        guard !turns.isEmpty else { throw ScenarioProblem(description: "\"turns\" has none") }
        self.turns = turns
      case "bargeIn": bargeIn = try Self.word(value, "bargeIn")
      case "keys":
        keys = []
        for key in try Self.list(value, "keys") { keys.append(try Self.text(key, "keys")) }
      case "refusals": refusals = try Self.integer(value, "refusals", 0...1_000)
      case "refusalStatus": refusalStatus = try Self.integer(value, "refusalStatus", 400...599)
      case "speed":
        guard let number = value.double, (0.01...1_000).contains(number) else {
          throw ScenarioProblem(description: "\"speed\" has to be a number from 0.01 to 1000")
        }
        speed = number
      case "chunk": chunk = try Self.integer(value, "chunk", 1...1_000_000)
      case "early": isEarly = try Self.bool(value, "early")
      case "checksPlayback": checksPlayback = try Self.bool(value, "checksPlayback")
      case "voice": voice = try Self.text(value, "voice")
      default: throw ScenarioProblem(description: "\"\(member.name)\" is nothing a scenario has")
      }
    }
  }

  static func list(_ value: JSONValue, _ name: String) throws(ScenarioProblem) -> [JSONValue] {
    guard let list = value.array else { throw ScenarioProblem(description: "\"\(name)\" has to be a list") }
    return list
  }

  static func text(_ value: JSONValue, _ name: String) throws(ScenarioProblem) -> String {
    guard let text = value.string else { throw ScenarioProblem(description: "\"\(name)\" has to be a text") }
    return text
  }

  static func bool(_ value: JSONValue, _ name: String) throws(ScenarioProblem) -> Bool {
    guard let bool = value.bool else {
      throw ScenarioProblem(description: "\"\(name)\" has to be true or false")
    }
    return bool
  }

  static func integer(
    _ value: JSONValue, _ name: String, _ range: ClosedRange<Int>
  ) throws(ScenarioProblem) -> Int {
    guard let number = value.integer, range.contains(number) else {
      throw ScenarioProblem(
        description: "\"\(name)\" has to be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  static func word<Word: RawRepresentable & CaseIterable>(
    _ value: JSONValue, _ name: String
  ) throws(ScenarioProblem) -> Word where Word.RawValue == String {
    guard let word = value.string.flatMap(Word.init(rawValue:)) else {
      let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw ScenarioProblem(description: "\"\(name)\" is none of \(words)")
    }
    return word
  }
}

extension BailianScenario.Turn {
  fileprivate init(_ json: JSONValue) throws(ScenarioProblem) {
    self.init()
    guard let members = json.members else { throw ScenarioProblem(description: "a turn has to be an object") }
    for member in members {
      switch member.name {
      case "hears": hears = try BailianScenario.text(member.value, "hears")
      case "says": says = try BailianScenario.text(member.value, "says")
      case "thinks": thinks = try BailianScenario.integer(member.value, "thinks", 0...60_000)
      case "commands": commands = try BailianScenario.list(member.value, "commands")
      case "fault": fault = try BailianScenario.Fault(member.value)
      default: throw ScenarioProblem(description: "\"\(member.name)\" is nothing a turn has")
      }
    }
  }
}

extension BailianScenario.Fault {
  fileprivate init(_ json: JSONValue) throws(ScenarioProblem) {
    self.init(try BailianScenario.word(json["kind"] ?? .null, "kind"))
    for member in json.members ?? [] {
      switch member.name {
      case "kind": break
      case "at": place = try BailianScenario.word(member.value, "at")
      case "code": code = try BailianScenario.integer(member.value, "code", 0...99_999_999)
      case "name": name = try BailianScenario.text(member.value, "name")
      default: throw ScenarioProblem(description: "\"\(member.name)\" is nothing a fault has")
      }
    }
  }
}
