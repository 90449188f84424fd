import MillraceBailianDouble
import Testing

@Suite("Scenarios of the double") struct ScenarioTests {
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
    "what is wrong is told with its place, and with what was meant",
    arguments: [
      (
        "{\n  \"turn\": []\n}",
        "s.json:2:3: error: \"turn\" is nothing a scenario has; did you mean \"turns\"?"
      ),
      ("{ \"turns\": [] }", "s.json:1:12: error: \"turns\" has none"),
      ("{ \"speed\": 0 }", "s.json:1:12: error: \"speed\" has to be a number from 0.01 to 1000"),
      (
        "{ \"turns\": [\n { \"fault\": { \"kind\": \"dorp\" } } ] }",
        "s.json:2:23: error: \"kind\" is none of drop, stall, hold, malformed, unknown, oversized, error, fail, repeated, outOfOrder, kick, expire; did you mean \"drop\"?"
      ),
      (
        "{ \"fault\": { \"kind\": \"drop\" } }",
        "s.json:1:12: error: a fault of the scenario is at connecting or listening; this one belongs to a turn"
      ),
    ])
  func wrong(text: String, words: String) throws {
    do {
      _ = try BailianScenario(parsing: text, name: "s.json")
      Issue.record("it was read")
    } catch {
      #expect(error.description == words)
    }
  }

  @Test("a text that is no JSON is told with its place")
  func noJSON() throws {
    do {
      _ = try BailianScenario(parsing: "{\n  \"speed\": }", name: "s.json")
      Issue.record("it was read")
    } catch {
      #expect(error.description.hasPrefix("s.json:2:12: error: "), "\(error.description)")
    }
  }
}
