internal import MillraceDialog
internal import MillraceGraph
internal import MillraceJSON

/// Why a scenario is not valid: `file:line:column: error: …`.
public struct ScenarioProblem: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
}

extension BailianScenario {
  /// Parses a scenario. Every member is optional; unknown members are rejected.
  /// - Parameters:
  ///   - text: JSON.
  ///   - name: the file name in messages.
  public init(parsing text: String, name: String = "scenario") throws(ScenarioProblem) {
    self.init()
    let document: JSONDocument
    do throws(Problem) { document = try JSONDocument.scan(SourceFile(name: name, text: text)) } catch {
      throw ScenarioProblem(description: error.description)
    }
    let reader = ScenarioReader(document: document)
    for member in try reader.members(document.root, of: "a scenario") { try read(member, reader) }
  }

  private mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) {
    switch member.key {
    case "turns":
      var turns: [Turn] = []
      for turn in try reader.list(member) { turns.append(try Turn(turn, reader)) }
      guard !turns.isEmpty else { throw reader.problem(member.value, "\"turns\" is empty") }
      self.turns = turns
    case "bargeIn": bargeIn = try reader.word(member)
    case "keys":
      keys = []
      for key in try reader.list(member) { keys.append(try reader.text(key, "a key")) }
    case "refusals": refusals = try reader.integer(member, 0...1_000)
    case "refusalStatus": refusalStatus = try reader.integer(member, 400...599)
    case "fault":
      let made = try Fault(member.value, reader)
      guard made.isBeforeTurns else {
        throw reader.problem(
          member.value, "a scenario's fault must be at connecting or listening; this one belongs to a turn")
      }
      fault = made
    case "delay": delay = try reader.integer(member, 0...600_000)
    case "numbered": isNumbered = try reader.bool(member)
    case "speed":
      guard let number = member.value.double, (0.01...1_000).contains(number) else {
        throw reader.problem(member.value, "\"speed\" must be a number from 0.01 to 1000")
      }
      speed = number
    case "chunk": chunk = try reader.integer(member, 1...1_000_000)
    case "early": isEarly = try reader.bool(member)
    case "checksPlayback": checksPlayback = try reader.bool(member)
    case "voice": voice = try reader.text(member)
    default: throw reader.unknown(member, of: "a scenario", BailianScenario.members)
    }
  }

  private static let members = [
    "turns", "bargeIn", "keys", "refusals", "refusalStatus", "fault", "delay", "numbered", "speed", "chunk",
    "early", "checksPlayback", "voice",
  ]
}

extension BailianScenario.Turn {
  fileprivate init(_ node: JSONNode, _ reader: ScenarioReader) throws(ScenarioProblem) {
    self.init()
    for member in try reader.members(node, of: "a turn") {
      switch member.key {
      case "hears": hears = try reader.text(member)
      case "says": says = try reader.text(member)
      case "thinks": thinks = try reader.integer(member, 0...60_000)
      case "commands":
        commands = []
        for command in try reader.list(member) { commands.append(try reader.value(command)) }
      case "fault":
        let made = try BailianScenario.Fault(member.value, reader)
        guard !made.isBeforeTurns else {
          throw reader.problem(
            member.value, "a fault at \(made.place.rawValue) belongs to the scenario, not to a turn")
        }
        fault = made
      default: throw reader.unknown(member, of: "a turn", ["hears", "says", "thinks", "commands", "fault"])
      }
    }
  }
}

extension BailianScenario.Fault {
  fileprivate var isBeforeTurns: Bool { place == .connecting || place == .listening }

  fileprivate init(_ node: JSONNode, _ reader: ScenarioReader) throws(ScenarioProblem) {
    let members = try reader.members(node, of: "a fault")
    guard let kind = members.first(where: { $0.key == "kind" }) else {
      throw reader.problem(node, "a fault needs a \"kind\"")
    }
    self.init(try reader.word(kind))
    for member in members {
      switch member.key {
      case "kind": break
      case "at": place = try reader.word(member)
      case "code": code = try reader.integer(member, 0...99_999_999)
      case "name": name = try reader.text(member)
      default: throw reader.unknown(member, of: "a fault", ["kind", "at", "code", "name"])
      }
    }
  }
}

/// Reads members, and reports the position of an invalid one.
private struct ScenarioReader {
  let document: JSONDocument

  func problem(_ node: JSONNode, _ text: String, hint: String? = nil) -> ScenarioProblem {
    ScenarioProblem(description: document.error(at: node, text, hint: hint).description)
  }

  func unknown(_ member: JSONMember, of what: String, _ names: [String]) -> ScenarioProblem {
    let near = Spelling.nearest(to: member.key, among: names)
    let problem = document.error(
      at: member.keyRange, "unknown member \(Problem.quoted(member.key)) in \(what)",
      hint: near.map { "did you mean \"\($0)\"?" } ?? "valid members: \(names.joined(separator: ", "))")
    return ScenarioProblem(description: problem.description)
  }

  func members(_ node: JSONNode, of what: String) throws(ScenarioProblem) -> [JSONMember] {
    guard let object = node.object else {
      throw problem(node, "\(what) must be an object, found \(node.kind)")
    }
    return object.members
  }

  func list(_ member: JSONMember) throws(ScenarioProblem) -> [JSONNode] {
    guard let list = member.value.array else {
      throw problem(member.value, "\"\(member.key)\" must be an array, found \(member.value.kind)")
    }
    return list
  }

  func text(_ member: JSONMember) throws(ScenarioProblem) -> String {
    try text(member.value, "\"\(member.key)\"")
  }

  func text(_ node: JSONNode, _ what: String) throws(ScenarioProblem) -> String {
    guard let text = node.string else { throw problem(node, "\(what) must be a string, found \(node.kind)") }
    return text
  }

  func bool(_ member: JSONMember) throws(ScenarioProblem) -> Bool {
    guard let bool = member.value.bool else {
      throw problem(member.value, "\"\(member.key)\" must be true or false, found \(member.value.kind)")
    }
    return bool
  }

  func integer(_ member: JSONMember, _ range: ClosedRange<Int>) throws(ScenarioProblem) -> Int {
    guard let number = member.value.integer.flatMap({ Int(exactly: $0) }), range.contains(number) else {
      throw problem(
        member.value,
        "\"\(member.key)\" must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func word<Word: RawRepresentable & CaseIterable>(
    _ member: JSONMember
  ) throws(ScenarioProblem) -> Word where Word.RawValue == String {
    let words = Word.allCases.map(\.rawValue)
    guard let word = member.value.string.flatMap(Word.init(rawValue:)) else {
      let near = member.value.string.flatMap { Spelling.nearest(to: $0, among: words) }
      throw problem(
        member.value, "\"\(member.key)\" must be one of \(words.joined(separator: ", "))",
        hint: near.map { "did you mean \"\($0)\"?" })
    }
    return word
  }

  /// The JSON value of a node.
  func value(_ node: JSONNode) throws(ScenarioProblem) -> JSONValue {
    do throws(JSONProblem) {
      return try JSONValue(parsing: Array(document.source.bytes[node.range]))
    } catch {
      throw problem(node, error.description)
    }
  }
}
