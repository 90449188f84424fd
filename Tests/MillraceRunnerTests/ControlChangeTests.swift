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
  private func answers(to lines: [String], instances: Int = 1) throws -> [String] {
    let text = """
      { "millrace": 1, "clock": "virtual",
        "nodes": { "src": { "type": "test.count", "count": -1, "pace": true }, "end": { "type": "test.sink" } },
        "links": [ "src -> end" ] }
      """
    let plan = try Graph.load(
      text: text, name: "graph.json", settings: GraphSettings(environment: .values([:])),
      catalogue: .runnerTests)
    let engine = Engine(catalogue: .runnerTests, clock: .virtual, workers: 1)
    let runs = try (0..<instances).map { _ in try engine.prepare(plan) }
    let path = folder.file("answers")
    let targets = runs.enumerated().map {
      PendingCommand.Target(graph: "graph", instance: $0.offset + 1, run: $0.element)
    }
    let dispatcher = ControlDispatcher(targets, answers: try ControlAnswers(path))
    for line in lines { dispatcher.handle(.whole(Array(line.utf8))) }
    for run in runs {
      run.drain(at: .milliseconds(4_000))
      run.start()
    }
    for run in runs {
      _ = try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
    }
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

  @Test("when some instances refuse a command, the answer says how many have executed it")
  func someInstances() throws {
    let answers = try answers(
      to: [
        #"{ "command": "add", "at": "1s", "part": "ear", "type": "test.sink", "links": ["src -> ear"], "instance": 2 }"#,
        #"{ "command": "add", "at": "2s", "part": "ear", "type": "test.sink", "links": ["src -> ear"] }"#,
        #"{ "command": "remove", "at": "3s", "part": "nose" }"#,
      ], instances: 3)
    #expect(answers.count == 3 && answers[0].contains(#""ok":true"#), "\(answers)")
    #expect(answers[1].contains("; executed by 2 of 3 runs"), "\(answers)")
    #expect(answers[2].contains("(and 2 more)") && !answers[2].contains("executed by"), "\(answers)")
  }

  @Test("a time that is too long is refused with the limit")
  func tooLong() throws {
    let answers = try answers(to: [#"{ "command": "drain", "at": "1000h" }"#])
    #expect(answers.count == 1 && answers[0].contains(#"\"at\" must be at most 1000000s"#), "\(answers)")
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
