import MillraceDoubles
import MillraceNet
import Testing

@Suite("how a double is started") struct OptionsTests {
  private typealias Scenario = DoubleScenario<ParrotMembers, ParrotTurn>

  @Test("the scenario is the standard one, a conversation, or a file's, and keeps what the options say")
  func scenarios() throws {
    var options = DoubleOptions()
    let standard: Scenario = try options.load()
    #expect(standard.turns == Scenario().turns && !standard.keeps && !standard.checksPlayback)
    options.scenario = .conversation
    let conversation: Scenario = try options.load()
    #expect(conversation.turns.count == 3 && conversation.checksPlayback)
    options.scenario = .text(#"{ "wings": 1 }"#, name: "s.json")
    options.keeps = true
    let file: Scenario = try options.load()
    #expect(file.wings == 1 && file.keeps)
  }

  @Test("a voice that cannot speak is reported when the scenario is read, unless replies are numbered")
  func voices() throws {
    var options = DoubleOptions()
    options.scenario = .text(#"{ "voice": "klingonx" }"#, name: "s.json")
    do throws(DoubleProblem) {
      let scenario: Scenario = try options.load()
      Issue.record("the scenario was accepted: \(scenario)")
    } catch {
      let text = error.description
      #expect(text.hasPrefix("s.json: ") && text.contains("espeak-ng"), "\(text)")
    }
    options.scenario = .text(#"{ "voice": "klingonx", "numbered": true }"#, name: "s.json")
    let numbered: Scenario = try options.load()
    #expect(numbered.voice == "klingonx")
  }

  @Test("what is wrong with the scenario or the port is reported as it is")
  func problems() {
    var options = DoubleOptions()
    options.scenario = .text("{ \"wing\": 1 }", name: "s.json")
    do {
      let scenario: Scenario = try options.load()
      Issue.record("the scenario was accepted: \(scenario)")
    } catch {
      #expect("\(error)".hasPrefix("s.json:1:3: error: unknown member \"wing\""))
    }
    let error = NetError(.address, "no such host")
    #expect("\(DoubleProblem.listening(error))" == "\(error)")
    #expect("\(DoubleProblem.other("install it"))" == "install it")
  }
}
