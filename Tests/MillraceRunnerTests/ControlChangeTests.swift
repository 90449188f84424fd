import Glibc
import MillraceCore
import MillraceEngine
import MillraceGraph
import TestSystem
import Testing

@testable import MillraceRunner

@Suite("Control commands that change a running graph", .timeLimit(.minutes(30)))
struct ControlChangeTests {
  private let folder = TemporaryFolder()

  /// The answers to command lines for a graph that runs for four seconds on a virtual clock.
  private func answers(to lines: [String]) throws -> [String] {
    let text = """
      { "millrace": 1, "clock": "virtual",
        "nodes": { "src": { "type": "test.count", "count": -1, "pace": true }, "end": { "type": "test.sink" } },
        "links": [ "src -> end" ] }
      """
    let plan = try Graph.load(
      text: text, name: "graph.json", settings: GraphSettings(environment: .values([:])),
      catalogue: .runnerTests)
    let run = try Engine(catalogue: .runnerTests, clock: .virtual, workers: 1).prepare(plan)
    let path = folder.file("answers")
    let dispatcher = ControlDispatcher(
      [PendingCommand.Target(graph: "graph", instance: 1, run: run)], answers: try ControlAnswers(path))
    for line in lines { dispatcher.handle(.whole(Array(line.utf8))) }
    run.drain(at: .milliseconds(4_000))
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
    dispatcher.close()
    return String(decoding: contents(path), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test("a node, a graph file and a link are added and removed at their times")
  func changes() throws {
    let file = folder.file("part.json")
    write(
      #"{ "millrace": 1, "parameters": { "n": { "default": "0" } }, "nodes": { "in": { "type": "test.sink", "failAt": "${n}" } }, "links": [] }"#,
      to: file)
    let answers = try answers(to: [
      #"{ "command": "add", "at": "1s", "part": "ear", "type": "test.sink", "parameters": { "failAt": 0 }, "links": ["src -> ear"] }"#,
      #"{ "command": "add", "at": "1s", "part": "more", "file": "\#(file)", "set": { "n": 1000 }, "links": ["src -> more/in"] }"#,
      #"{ "command": "relink", "at": "2s", "unlink": ["src -> end"] }"#,
      #"{ "command": "relink", "at": "2s", "links": ["src -> end"] }"#,
      #"{ "command": "remove", "at": "3s", "part": "ear" }"#,
      #"{ "command": "remove", "at": "3s", "part": "nose" }"#,
      #"{ "command": "add", "at": "3s", "part": "end", "type": "test.sink", "links": ["src -> end"] }"#,
    ])
    #expect(answers.count == 7)
    #expect(answers.prefix(5).allSatisfy { $0.contains(#""ok":true"#) }, "\(answers)")
    #expect(answers.suffix(2).allSatisfy { $0.contains(#""ok":false"#) }, "\(answers)")
  }

  @Test("syntax errors are rejected with their position")
  func wrong() throws {
    let answers = try answers(to: [
      #"{ "command": "add", "part": "ear" }"#,
      #"{ "command": "add", "part": "ear", "type": "test.sink", "file": "ear.json" }"#,
      #"{ "command": "add", "part": "ear", "type": "test.sink", "links": "src -> ear" }"#,
      #"{ "command": "add", "part": "ear", "type": "test.sink", "links": [1] }"#,
      #"{ "command": "add", "part": "ear", "type": "test.sink", "set": {} }"#,
      #"{ "command": "add", "part": "ear", "file": "ear.json", "parameters": {} }"#,
      #"{ "command": "relink" }"#,
      #"{ "command": "remove" }"#,
    ])
    #expect(answers.count == 8 && answers.allSatisfy { $0.contains(#""column":"#) }, "\(answers)")
  }

  @Test("a named pipe is not read as a part, since its writer might be silent")
  func pipe() throws {
    let path = folder.file("pipe")
    #expect(mkfifo(path, 0o600) == 0)
    // Without the check this would wait for a writer.
    let answers = try answers(to: [
      #"{ "command": "add", "part": "ear", "file": "\#(path)", "links": ["src -> ear/in"] }"#
    ])
    #expect(answers.count == 1 && answers[0].contains("it is a named pipe"), "\(answers)")
  }
}
