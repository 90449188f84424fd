import MillraceDialog
import MillraceGraph
import MillraceJSON

/// Feeds arbitrary text to the parser of scenarios for the double.
///
/// It must never crash. An error must name the position and the cause. A scenario must be within the documented bounds and must not depend
/// on the layout of the file.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzScenario(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  let scenario: FuzzedScenario
  do throws(ScenarioProblem) { scenario = try FuzzedScenario(parsing: text, name: "in.json") } catch {
    checkError(error)
    return 0
  }
  checkBounds(of: scenario)
  for pretty in [false, true] {
    do throws(ScenarioProblem) {
      if try FuzzedScenario(parsing: written(text, pretty: pretty)) != scenario {
        fatalError("the round trip changed the scenario")
      }
    } catch {
      fatalError("the scenario does not parse after a round trip: \(error)")
    }
  }
  return 0
}

private typealias FuzzedScenario = DoubleScenario<FuzzedMembers, FuzzedTurn>

/// What a service may add to a scenario: one of a few words, and a switch.
private struct FuzzedMembers: ScenarioMembers {
  enum Word: String, CaseIterable {
    case accepted, listening, speech, ended
  }

  static let names = ["bargeIn", "early"]
  var bargeIn = Word.accepted
  var isEarly = true

  mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "bargeIn": bargeIn = try reader.word(member)
    case "early": isEarly = try reader.bool(member)
    default: return false
    }
    return true
  }
}

/// What a service may add to a turn: any values.
private struct FuzzedTurn: ScenarioMembers {
  static let names = ["commands"]
  var commands: [JSONValue] = []

  mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    guard member.key == "commands" else { return false }
    commands = []
    for command in try reader.list(member) { commands.append(try reader.value(command)) }
    return true
  }
}

private func checkError(_ error: ScenarioProblem) {
  if error.description.firstMatch(of: /^in\.json(:[1-9][0-9]*:[1-9][0-9]*)?: error: ./) == nil {
    fatalError("an error without a text or a position: \(error)")
  }
  if error.description.unicodeScalars.contains(where: { $0.value < 0x20 && $0 != "\n" }) {
    fatalError("an error with a control character")
  }
}

private func checkBounds(of scenario: FuzzedScenario) {
  let isWithin =
    !scenario.turns.isEmpty && (0...1_000).contains(scenario.refusals)
    && (400...599).contains(scenario.refusalStatus) && (0...600_000).contains(scenario.delay)
    && (0.01...1_000).contains(scenario.speed) && (1...1_000_000).contains(scenario.chunk)
  if !isWithin { fatalError("out of bounds: \(scenario)") }
  if let place = scenario.fault?.place, place != .connecting, place != .listening {
    fatalError("the fault of a turn outside of a turn")
  }
  for turn in scenario.turns {
    if !(0...60_000).contains(turn.thinks) { fatalError("a delay of \(turn.thinks) ms") }
    if let place = turn.fault?.place, place == .connecting || place == .listening {
      fatalError("the fault of the connection in a turn")
    }
  }
}

private func written(_ text: String, pretty: Bool) -> String {
  var json = JSONWriter(pretty: pretty)
  do throws(Problem) {
    json.value(try JSONDocument.scan(SourceFile(name: "in.json", text: text)).root)
  } catch {
    fatalError("a scenario that is not JSON: \(error)")
  }
  return json.text
}
