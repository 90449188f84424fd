import MillraceEngine
import MillraceGraph
import TestSystem
import Testing

@testable import MillraceRunner

@Suite("Control commands that wait for their time", .timeLimit(.minutes(30)))
struct ControlDispatcherTests {
  private let folder = TemporaryFolder()

  @Test(
    "their lines have 64 MiB at most: the next one is refused with the cure, and those that wait are kept")
  func bytes() throws {
    let text = """
      { "millrace": 1, "clock": "virtual",
        "nodes": { "src": { "type": "test.count" }, "end": { "type": "test.sink" } }, "links": [ "src -> end" ] }
      """
    let plan = try Graph.load(
      text: text, name: "graph.json", settings: GraphSettings(environment: .values([:])),
      catalogue: .runnerTests)
    let run = try Engine(catalogue: .runnerTests, clock: .virtual, workers: 1).prepare(plan)
    let path = folder.file("answers")
    let desk = ControlDispatcher(
      [PendingCommand.Target(graph: "graph", instance: 1, run: run)], answers: try ControlAnswers(path))
    let command = Array(#"{ "command": "interrupt", "at": "1s" }"#.utf8)
    let line = command + [UInt8](repeating: UInt8(ascii: " "), count: (1 << 20) - command.count)
    for _ in 0..<64 { desk.take(.whole(line)) }
    #expect(contents(path).isEmpty)
    desk.take(.whole(command))
    let refusal = "commands of 64 MiB wait for their time already; send this one later"
    #expect(
      String(decoding: contents(path), as: UTF8.self) == #"{"line":65,"ok":false,"error":"\#(refusal)"}"#
        + "\n")
    desk.close()
    let answers = String(decoding: contents(path), as: UTF8.self).split(separator: "\n").dropFirst()
    #expect(answers.count == 64 && answers.allSatisfy { $0.contains("the graph ended at 0") })
  }
}
