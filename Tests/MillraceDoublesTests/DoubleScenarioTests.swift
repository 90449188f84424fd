import MillraceConformance
import MillraceDialog
import MillraceDoubles
import MillraceGraph
import Testing

/// What a parrot adds to scenarios.
struct ParrotMembers: ScenarioMembers {
  static let names = ["wings"]
  var wings = 2

  mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    guard member.key == "wings" else { return false }
    wings = try reader.integer(member, 0...2)
    return true
  }
}

/// What a parrot adds to turns.
struct ParrotTurn: ScenarioMembers {
  static let names = ["feathers"]
  var feathers = ""

  mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    guard member.key == "feathers" else { return false }
    feathers = try reader.text(member)
    return true
  }
}

@Suite("scenarios with members of a service") struct DoubleScenarioTests {
  private typealias Scenario = DoubleScenario<ParrotMembers, ParrotTurn>

  private func problem(_ text: String) -> String {
    do {
      _ = try Scenario(parsing: text, name: "s.json")
      return "accepted"
    } catch {
      return error.description
    }
  }

  @Test("the members of every scenario and those of the service are read side by side")
  func both() throws {
    let scenario = try Scenario(
      parsing: #"{ "wings": 1, "delay": 7, "turns": [{ "says": "a", "feathers": "green" }, {}] }"#)
    #expect(scenario.wings == 1 && scenario.delay == 7)
    #expect(scenario.turns.map(\.feathers) == ["green", ""] && scenario.turns[0].says == "a")
    var other = Scenario()
    other.wings = 0
    other.turns[0].feathers = "red"
    #expect(other.own.wings == 0 && other.turns[0].own.feathers == "red")
  }

  @Test(
    "an invalid member of either is rejected with its position; a misspelt one with the nearest name",
    arguments: [
      (#"{ "wings": 3 }"#, "s.json:1:12: error: \"wings\" must be an integer from 0 to 2"),
      (
        #"{ "wing": 1 }"#, "s.json:1:3: error: unknown member \"wing\" in a scenario; did you mean \"wings\"?"
      ),
      (
        #"{ "turns": [{ "feather": "" }] }"#,
        "s.json:1:15: error: unknown member \"feather\" in a turn; did you mean \"feathers\"?"
      ),
      (
        #"{ "turns": [{ "sais": "" }] }"#,
        "s.json:1:15: error: unknown member \"sais\" in a turn; did you mean \"says\"?"
      ),
      (
        #"{ "turns": [{ "wings": 1 }] }"#,
        "s.json:1:15: error: unknown member \"wings\" in a turn; valid members: hears, says, thinks, fault, feathers"
      ),
      (#"{ "speed": 1001 }"#, "s.json:1:12: error: \"speed\" must be a number from 0.01 to 1000"),
      (
        #"{ "turns": [{ "fault": { "kind": "drop", "at": "listening" } }] }"#,
        "s.json:1:24: error: a fault at listening belongs to the scenario, not to a turn"
      ),
      (
        #"{ "fault": { "kind": "kick", "reason": "replced" } }"#,
        "s.json:1:40: error: \"reason\" must be one of replaced, removed, ended, other; did you mean \"replaced\"?"
      ),
      (#"{ "fault": {} }"#, "s.json:1:12: error: a fault needs a \"kind\""),
      ("[]", "s.json:1:1: error: a scenario must be an object, found an array"),
    ])
  func wrong(text: String, message: String) { #expect(problem(text) == message) }

  @Test(
    "a fault that the double cannot perform is rejected where it stands, with those that it can",
    arguments: [
      (
        #"{ "turns": [{ "fault": { "kind": "kick", "at": "midway" } }] }"#,
        "s.json:1:34: error: this double has no fault \"kick\"; it has drop, hold"
      ),
      (
        #"{ "fault": { "kind": "hold", "at": "connecting" } }"#,
        "s.json:1:36: error: this double has no fault \"hold\" at connecting; it has it at listening, thinking"
      ),
      (
        #"{ "turns": [{ "fault": { "kind": "hold" } }] }"#,
        "s.json:1:24: error: this double has no fault \"hold\" at responding; it has it at listening, thinking"
      ),
    ])
  func beyond(text: String, message: String) throws {
    let faults: [ServiceFault.Kind: Set<ServiceFault.Place>] = [
      .hold: [.thinking, .listening], .drop: [.connecting, .midway],
    ]
    do {
      _ = try Scenario(parsing: text, name: "s.json", faults: faults)
      Issue.record("the scenario was accepted")
    } catch {
      #expect(error.description == message)
    }
    var options = DoubleOptions()
    options.scenario = .text(text, name: "s.json")
    #expect(throws: DoubleProblem.self) { let _: Scenario = try options.load(faults: faults) }
    let loaded: Scenario = try options.load()
    #expect(loaded.fault != nil || loaded.turns[0].fault != nil)
    let fitting = #"{ "fault": { "kind": "drop", "at": "connecting" } }"#
    #expect(try Scenario(parsing: fitting, faults: faults).fault?.kind == .drop)
  }

  @Test(
    "a reason of a kick that the double does not state is rejected where it stands, with those that it states",
    arguments: [
      (Set([KickReason.ended, .replaced]), "it states replaced, ended, or none without a \"reason\""),
      (Set(), "it states none; remove it"),
    ])
  func kickReasons(_ reasons: Set<KickReason>, hint: String) throws {
    let text = #"{ "fault": { "kind": "kick", "at": "listening", "reason": "removed" } }"#
    var options = DoubleOptions()
    options.scenario = .text(text, name: "s.json")
    let message = "s.json:1:59: error: this double does not state the reason \"removed\"; \(hint)"
    do throws(DoubleProblem) {
      let scenario: Scenario = try options.load(kickReasons: reasons)
      Issue.record("the scenario was accepted: \(scenario)")
    } catch { #expect(error.description == message) }
    #expect(try Scenario(parsing: text).fault?.reason == .removed)
    #expect(try Scenario(parsing: text, kickReasons: [.removed]).fault?.reason == .removed)
  }

  @Test("a fault happens at the beginning of a reply unless the scenario says where")
  func fault() throws {
    let scenario = try Scenario(
      parsing: #"{ "turns": [{ "fault": { "kind": "error", "code": 7, "name": "X" } }] }"#)
    var expected = ServiceFault(.error, at: .responding)
    expected.code = 7
    expected.name = "X"
    #expect(scenario.turns[0].fault == expected)
    let kicked = try Scenario(
      parsing: #"{ "fault": { "kind": "kick", "at": "listening", "reason": "replaced" } }"#)
    #expect(kicked.fault?.reason == .replaced)
  }

  @Test("the script of a conformance case becomes a scenario")
  func script() {
    var script = ServiceScript()
    script.replyMilliseconds = 300
    script.delay = 5
    script.refusal = .busy(4)
    script.fault = ServiceFault(.stall, at: .connecting)
    let first = Scenario(script)
    #expect(first.isNumbered && first.delay == 5 && first.refusals == 4 && first.keys == [])
    #expect(first.speed == script.speed && first.chunk == script.chunk)
    #expect(first.fault == script.fault && first.turns.allSatisfy { $0.fault == nil })
    #expect(first.turns[0].says == "word word word")
    script.refusal = .key
    script.fault = ServiceFault(.stall, at: .midway)
    let second = Scenario(script)
    #expect(second.fault == nil && second.turns[0].fault == script.fault && second.turns[1].fault == nil)
    #expect(!second.keys.isEmpty && second.refusals == 0)
  }
}
