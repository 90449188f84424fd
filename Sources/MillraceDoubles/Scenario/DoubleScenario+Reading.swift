public import MillraceConformance
public import MillraceDialog
internal import MillraceGraph

extension DoubleScenario {
  /// Parses a scenario. Every member is optional; unknown members are rejected.
  /// - Parameters:
  ///   - text: JSON.
  ///   - name: the file name in messages.
  ///   - faults: the faults that the double can perform, and where: others are rejected. nil: any.
  ///   - kickReasons: the reasons that the double can state when it removes a client: others are rejected. nil: any.
  public init(
    parsing text: String, name: String = "scenario",
    faults: [ServiceFault.Kind: Set<ServiceFault.Place>]? = nil, kickReasons: Set<KickReason>? = nil
  ) throws(ScenarioProblem) {
    self.init()
    let reader = try ScenarioReader(parsing: text, name: name, faults: faults, kickReasons: kickReasons)
    for member in try reader.members(reader.document.root, of: "a scenario") {
      if try read(member, reader) { continue }
      if try own.read(member, reader) { continue }
      throw reader.unknown(member, of: "a scenario", Self.names + Own.names)
    }
  }

  private static var names: [String] {
    [
      "turns", "keys", "refusals", "refusalStatus", "fault", "delay", "numbered", "speed", "chunk",
      "checksPlayback", "voice",
    ]
  }

  private mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "turns":
      var turns: [Turn] = []
      for turn in try reader.list(member) { turns.append(try Turn(turn, reader)) }
      guard !turns.isEmpty else { throw reader.problem(member.value, "\"turns\" is empty") }
      self.turns = turns
    case "keys":
      keys = []
      for key in try reader.list(member) { keys.append(try reader.text(key, "a key")) }
    case "refusals": refusals = try reader.integer(member, 0...1_000)
    case "refusalStatus": refusalStatus = try reader.integer(member, 400...599)
    case "fault":
      let made = try ServiceFault(member.value, reader)
      guard made.place.isBeforeTurns else {
        throw reader.problem(
          member.value, "a scenario's fault must be at connecting or listening; this one belongs to a turn")
      }
      fault = made
    case "delay": delay = try reader.integer(member, 0...600_000)
    case "numbered": isNumbered = try reader.bool(member)
    case "speed": speed = try reader.number(member, 0.01...1_000)
    case "chunk": chunk = try reader.integer(member, 1...1_000_000)
    case "checksPlayback": checksPlayback = try reader.bool(member)
    case "voice": voice = try reader.text(member)
    default: return false
    }
    return true
  }
}

extension DoubleScenario.Turn {
  fileprivate init(_ node: JSONNode, _ reader: ScenarioReader) throws(ScenarioProblem) {
    self.init()
    for member in try reader.members(node, of: "a turn") {
      if try read(member, reader) { continue }
      if try own.read(member, reader) { continue }
      throw reader.unknown(member, of: "a turn", ["hears", "says", "thinks", "fault"] + OwnTurn.names)
    }
  }

  private mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "hears": hears = try reader.text(member)
    case "says": says = try reader.text(member)
    case "thinks": thinks = try reader.integer(member, 0...60_000)
    case "fault":
      let made = try ServiceFault(member.value, reader)
      guard !made.place.isBeforeTurns else {
        throw reader.problem(
          member.value, "a fault at \(made.place.rawValue) belongs to the scenario, not to a turn")
      }
      fault = made
    default: return false
    }
    return true
  }
}

extension ServiceFault {
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
      case "reason": reason = try Self.kickReason(member, reader)
      default: throw reader.unknown(member, of: "a fault", ["kind", "at", "code", "name", "reason"])
      }
    }
    guard let faults = reader.faults else { return }
    guard let places = faults[self.kind] else {
      let known = Kind.allCases.filter { faults[$0] != nil }.map(\.rawValue).joined(separator: ", ")
      throw reader.problem(
        kind.value, "this double has no fault \"\(self.kind.rawValue)\"", hint: "it has \(known)")
    }
    guard !places.contains(place) else { return }
    let known = Place.allCases.filter(places.contains).map(\.rawValue).joined(separator: ", ")
    throw reader.problem(
      members.first { $0.key == "at" }?.value ?? node,
      "this double has no fault \"\(self.kind.rawValue)\" at \(place.rawValue)", hint: "it has it at \(known)"
    )
  }

  /// A reason that the double can state.
  private static func kickReason(
    _ member: JSONMember, _ reader: ScenarioReader
  ) throws(ScenarioProblem) -> KickReason {
    let reason: KickReason = try reader.word(member)
    guard let reasons = reader.kickReasons, !reasons.contains(reason) else { return reason }
    let known = KickReason.allCases.filter(reasons.contains).map(\.rawValue).joined(separator: ", ")
    throw reader.problem(
      member.value, "this double does not state the reason \"\(reason.rawValue)\"",
      hint: known.isEmpty ? "it states none; remove it" : "it states \(known), or none without a \"reason\"")
  }
}
