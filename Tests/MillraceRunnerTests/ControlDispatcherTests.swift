import MillraceEngine
import MillraceGraph
import TestSystem
import Testing

@testable import MillraceRunner

@Suite("Pending control commands", .timeLimit(.minutes(30)))
struct ControlDispatcherTests {
  private let folder = TemporaryFolder()

  @Test("the longest message to a node fits into a line, even when each of its bytes is escaped")
  func longestLine() { #expect(LineSplitter.longest == 6 * GraphRun.longestMessage + 1_024) }

  @Test(
    "their lines have at most 64 MiB: the next one is rejected with the cure, and the others are kept")
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
    let dispatcher = ControlDispatcher(
      [PendingCommand.Target(graph: "graph", instance: 1, run: run)], answers: try ControlAnswers(path))
    let command = Array(#"{ "command": "interrupt", "at": "1s" }"#.utf8)
    let line = command + [UInt8](repeating: UInt8(ascii: " "), count: (1 << 20) - command.count)
    for _ in 0..<64 { dispatcher.handle(.whole(line)) }
    #expect(contents(path).isEmpty)
    dispatcher.handle(.whole(command))
    let error = "64 MiB of commands are already pending; send this one later"
    #expect(
      String(decoding: contents(path), as: UTF8.self) == #"{"line":65,"ok":false,"error":"\#(error)"}"#
        + "\n")
    dispatcher.close()
    let answers = String(decoding: contents(path), as: UTF8.self).split(separator: "\n").dropFirst()
    #expect(answers.count == 64 && answers.allSatisfy { $0.contains("the graph ended at 0") })
  }
}
