import MillraceBailianDouble
import MillraceConformance
import MillraceDoubles
import Testing

@Suite("scenarios of the double") struct ScenarioTests {
  @Test("every member is read")
  func whole() throws {
    let scenario = try BailianScenario(
      parsing: """
        { "turns": [{ "hears": "a", "says": "b", "thinks": 3, "commands": [{ "name": "visual_qa" }],
                      "fault": { "kind": "outOfOrder", "at": "midway", "code": 7, "name": "X" } }],
          "bargeIn": "speech", "keys": ["k"], "refusals": 2, "refusalStatus": 500, "delay": 40, "numbered": true,
          "fault": { "kind": "expire", "at": "connecting" }, "speed": 0.5, "chunk": 9, "early": false,
          "checksPlayback": true, "voice": "de" }
        """)
    let turn = try #require(scenario.turns.first)
    #expect(turn.hears == "a" && turn.says == "b" && turn.thinks == 3)
    #expect(turn.commands == [["name": "visual_qa"]])
    #expect(turn.fault?.kind == .outOfOrder && turn.fault?.place == .midway)
    #expect(turn.fault?.code == 7 && turn.fault?.name == "X")
    #expect(scenario.bargeIn == .speech && scenario.keys == ["k"] && scenario.refusals == 2)
    #expect(scenario.refusalStatus == 500 && scenario.delay == 40 && scenario.isNumbered)
    #expect(scenario.fault?.kind == .expire && scenario.fault?.place == .connecting)
    #expect(scenario.speed == 0.5 && scenario.chunk == 9 && !scenario.isEarly)
    #expect(scenario.checksPlayback && scenario.voice == "de")
  }

  @Test(
    "an invalid scenario is rejected with the position and a suggestion",
    arguments: [
      (
        "{\n  \"turn\": []\n}",
        "s.json:2:3: error: unknown member \"turn\" in a scenario; did you mean \"turns\"?"
      ),
      ("{ \"turns\": [] }", "s.json:1:12: error: \"turns\" is empty"),
      ("{ \"speed\": 0 }", "s.json:1:12: error: \"speed\" must be a number from 0.01 to 1000"),
      (
        "{ \"turns\": [\n { \"fault\": { \"kind\": \"dorp\" } } ] }",
        "s.json:2:23: error: \"kind\" must be one of drop, stall, hold, malformed, unknown, oversized, error, fail, repeated, outOfOrder, kick, expire; did you mean \"drop\"?"
      ),
      (
        "{ \"fault\": { \"kind\": \"drop\" } }",
        "s.json:1:12: error: a scenario's fault must be at connecting or listening; this one belongs to a turn"
      ),
    ])
  func wrong(text: String, message: String) throws {
    do {
      _ = try BailianScenario(parsing: text, name: "s.json")
      Issue.record("the scenario was accepted")
    } catch {
      #expect(error.description == message)
    }
  }

  @Test("a text that is not JSON is rejected with the position")
  func invalidJSON() throws {
    do {
      _ = try BailianScenario(parsing: "{\n  \"speed\": }", name: "s.json")
      Issue.record("the scenario was accepted")
    } catch {
      #expect(error.description.hasPrefix("s.json:2:12: error: "), "\(error.description)")
    }
  }
}
