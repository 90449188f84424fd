import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceEngine
import MillraceGraph
import Testing

/// A service, `dialog.turn` and an error in one graph.
@Suite("errors in a dialogue", .timeLimit(.minutes(10))) struct ErrorScopeTests {
  private func graph(_ port: Int) -> String {
    """
    {
      "millrace": 1, "name": "scope",
      "nodes": {
        "bot": {
          "type": "bailian.dialog", "url": "ws://127.0.0.1:\(port)/api-ws/v1/inference", "key": "sk-secret",
          "workspace": "llm-1", "app": "mm_1", "user": "tester",
          "open": 600000, "begin": 600000, "silence": 600000
        },
        "turn": { "type": "dialog.turn" }
      },
      "links": ["bot.events -> turn.service", "turn.control -> bot.control"]
    }
    """
  }

  @Test("a refused command is answered once, and the reply that is arriving continues to its end")
  func refusedCommand() async throws {
    var scenario = BailianScenario()
    scenario.isNumbered = true
    scenario.silence = 100_000
    scenario.turns[0].thinks = 10
    scenario.turns[0].says = Array(repeating: "word", count: 20).joined(separator: " ")
    let double = try await BailianDouble.listen(scenario)
    var catalogue = Catalogue.bailian
    catalogue.add(contentsOf: .dialog)
    let plan = try Graph.load(text: graph(double.port), name: "scope.json", catalogue: catalogue)
    let run = try Engine(catalogue: catalogue, workers: 1).prepare(plan)
    let events = run.events
    run.start()
    var answers: [String] = []
    var ends: [String] = []
    var isAsked = false
    var hasReply = false
    loop: for await event in events {
      switch (event.node, try? DialogEvent(parsing: event.json)) {
      case ("bot", .state(.listening)) where !isAsked:
        isAsked = true
        try run.send(#"{"command":"ask","text":"why?","id":"ask"}"#, to: "turn")
      case ("bot", .state(.listening)) where hasReply:
        ends.append("listening")
        break loop
      case ("bot", .replyStarted):
        hasReply = true
        // Refused by the service's node: there is no room. Twice with an id, and once without.
        for id in [#","id":"1""#, "", #","id":2"#] {
          try run.send(#"{"command":"setRole","role":"viewer"\#(id)}"#, to: "turn")
        }
        try run.send(#"{"command":"startSpeech","id":"3"}"#, to: "turn")
      case (_, .answer(let answer)):
        if case .failed = answer.result {
          answers.append("\(event.node) \(answer.id) failed")
        } else {
          answers.append("\(event.node) \(answer.id) done")
        }
      // Before the reply it concerns the connection, which a slow machine may open late.
      case ("bot", .error(let error)) where hasReply: ends.append("error \(error.scope.rawValue)")
      case ("bot", .interrupted(let source, _)): ends.append("interrupted \(source.rawValue)")
      case ("bot", .replyEnded(_, let utterances)):
        ends.append("replyEnded \(utterances)")
      default:
        if event.name == "bargeIn" || event.isOfRun && event.name == "stopped" { ends.append(event.name) }
      }
      // The reply may end before the answers are read here, or behind them.
      if answers.count >= 4 && ends.count >= 2 { break loop }
    }
    run.stop()
    double.stop()
    #expect(Set(ends) == ["error command", "replyEnded 1"] && ends.count == 2, "\(ends)")
    #expect(Set(answers) == ["bot ask done", "bot 1 failed", "bot 2 failed", "turn 3 failed"])
    #expect(answers.count == 4)
  }
}
