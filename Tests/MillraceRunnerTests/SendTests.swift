import Foundation
import MillraceRunner
import Testing

@Suite("Messages to nodes", .timeLimit(.minutes(30)))
struct SendTests {
  @Test("text and objects reach a node at their graph times, and a tap of its text writes lines with times")
  func sendAndTap() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      makeRunnerFolder()
      let commands = """
        { "command": "tap", "link": "echo -> say", "file": "said.jsonl" }
        { "command": "send", "node": "echo", "text": "hello \\"you\\"", "at": "250ms", "id": "first" }
        { "command": "send", "node": "echo", "text": { "say": [1, "two"] }, "at": "750ms" }
        """
      try Data(commands.utf8).write(to: URL(fileURLWithPath: "commands"))
      let status = MillraceCommand.run(
        catalogue: .runnerProgramTests, name: "counter",
        arguments: [
          "run", "-q", "echo.json", "--control", "commands", "--control-answers", "answers", "--clock",
          "virtual",
        ])
      printFile("answers")
      printFile("said.jsonl")
      guard status == .done else { exit(1) }
    }
    #expect(errors(of: result) == "hello \"you\"\n{\"say\":[1,\"two\"]}\n")
    let lines = output(of: result).split(separator: "\n").map(String.init).filter { $0.hasPrefix("{") }
    #expect(
      lines == [
        #"{"line":1,"ok":true,"time":0.0}"#, #"{"line":2,"id":"first","ok":true,"time":0.25}"#,
        #"{"line":3,"ok":true,"time":0.75}"#, #"{"time":0.25,"text":"hello \"you\""}"#,
        #"{"time":0.75,"text":"{\"say\":[1,\"two\"]}"}"#,
      ])
  }
}
