import Foundation
import Glibc
import Millrace
import Testing

/// `millrace run --control` with pipes, standard input, instances and several graphs.
@Suite("Control input and its targets", .timeLimit(.minutes(30)))
struct ControlInputTests: ControlSuite {
  let scratch = Scratch()

  @Test(
    "writers open and close a named pipe, with and without a final line break, and the run ends on command")
  func pipe() throws {
    let (pipe, answers) = (try makePipe("control"), scratch.file("answers"))
    let process = try RunnerProcess(
      ["run", "-q", try graph(endless: true), "--control", pipe, "--control-answers", answers], in: scratch)
    func count() -> Int { (try? scratch.bytes("answers").count { $0 == 10 }) ?? 0 }
    try process.wait { (try? scratch.bytes("live.wav").count) ?? 0 > 44 }
    try send(#"{ "command": "set", "node": "gain", "parameter": "gain", "value": -6 }"# + "\n", to: pipe)
    try process.wait { count() == 1 }
    try send(#"{ "command": "repo"#, to: pipe)
    try process.wait { count() == 2 }
    try send(#"{ "command": "interrupt", "id": [1] }"#, to: pipe)
    try process.wait { count() == 3 }
    try send("\n\n" + #"{ "command": "drain" }"#, to: pipe)
    let result = process.wait()
    #expect(result.status == 0 && result.errors.isEmpty && result.output.isEmpty)
    let lines = try self.answers(String(decoding: scratch.bytes("answers"), as: UTF8.self))
    #expect(lines.map { $0["ok"]?.value.bool } == [true, false, true, true])
    #expect(lines.map { $0["line"]?.value.integer } == [1, 2, 3, 6])
    #expect(lines[1]["error"]?.value.string?.isEmpty == false)
    #expect(lines[2]["id"]?.value.array?.count == 1)
    #expect(lines.allSatisfy { ($0["time"] == nil) == ($0["ok"]?.value.bool == false) })
    #expect(try Sound(path: scratch.file("live.wav")).frames > 0)
  }

  @Test("a named pipe without writers, and answers without a reader, do not delay a run")
  func idlePipes() throws {
    let (pipe, answers) = (try makePipe("control"), try makePipe("answers"))
    let path = try graph()
    let silent = try RunnerProcess.run(
      "run", "-q", path, "--clock", "virtual", "--control", pipe, "--control-answers", answers, in: scratch)
    #expect(silent.status == 0 && silent.errors.isEmpty)
    // A pipe holds 64 KiB, far less than 3,000 reports.
    let file = try commands(Array(repeating: #"{ "command": "report" }"#, count: 3_000))
    let flooded = try RunnerProcess.run(
      "run", "-q", path, "--clock", "virtual", "--control", file, "--control-answers", answers, in: scratch)
    #expect(flooded.status == 0)
    #expect(
      flooded.errors.hasPrefix("control: ")
        && flooded.errors.contains(" answers dropped because the pipe was full; "))
  }

  @Test("answers that do not fit on the disk are reported with the reason, and do not delay the run")
  func full() throws {
    let file = try commands([#"{ "command": "report" }"#, #"{ "command": "drain" }"#])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, "--control-answers", "/dev/full",
      in: scratch)
    #expect(result.status == 0)
    #expect(
      result.errors
        == "control: 2 answers could not be written: No space left on device (errno 28); free some space or choose another path\n"
    )
  }

  @Test("the end of standard input does not end the run; stop ends it immediately with status 0")
  func standardInput() throws {
    let input = Pipe()
    let process = try RunnerProcess(
      ["run", "-q", try graph(endless: true), "--control", "-"], in: scratch, input: input)
    try input.fileHandleForWriting.write(contentsOf: Data("{ \"command\": \"report\" }\n".utf8))
    try input.fileHandleForWriting.close()
    try process.wait { process.errorsSoFar.contains("\"ok\":true") }
    let length = try scratch.bytes("live.wav").count
    try process.wait { try scratch.bytes("live.wav").count >= length + 16_000 }
    process.send(SIGINT)
    let result = process.wait()
    #expect(result.status == 0)
    #expect(try answers(result.errors).count == 1)

    let second = Pipe()
    let stopped = try RunnerProcess(
      ["run", "-q", graph(endless: true), "--control", "-"], in: scratch, input: second)
    try second.fileHandleForWriting.write(contentsOf: Data("{ \"command\": \"stop\" }\n".utf8))
    let end = stopped.wait()
    #expect(end.status == 0)
    #expect(try answers(end.errors).first?["ok"]?.value.bool == true)
  }

  // MARK: Targets

  @Test("a command applies to one instance or to all, and unknown targets are rejected with the known ones")
  func instances() throws {
    let first = try graph()
    let file = try commands([
      #"{ "command": "set", "node": "gain", "parameter": "mute", "value": true, "graph": "live", "instance": 2 }"#,
      #"{ "command": "report", "instance": 1, "at": "10ms" }"#,
      #"{ "command": "drain", "graph": "other", "at": "40ms" }"#,
      #"{ "command": "drain", "instance": 4 }"#,
      #"{ "command": "drain", "graph": "lives" }"#,
    ])
    let one = try RunnerProcess.run(
      "run", "-q", first, "--clock", "virtual", "--instances", "3", "--control", file, "--set",
      "output=of-{instance}.wav", in: scratch)
    #expect(one.status == 0)
    let lines = try answers(one.errors)
    func answer(_ line: Int64) throws -> JSONObject {
      try #require(lines.first { $0["line"]?.value.integer == line })
    }
    #expect(try answer(1)["ok"]?.value.bool == true)
    #expect(try answer(2)["report"]?.value["runs"]?.array?.count == 1)
    #expect(try answer(3)["error"]?.value.string == #"no graph is named "other"; the graphs are "live""#)
    #expect(try answer(4)["error"]?.value.string == "instance 4 is out of range; use 1 to 3")
    #expect(try answer(5)["error"]?.value.string == #"no graph is named "lives"; did you mean "live"?"#)
    for instance in 1...3 {
      let isSilent = try Sound(path: scratch.file("of-\(instance).wav")).samples.allSatisfy { $0 == 0 }
      #expect(isSilent == (instance == 2))
    }
  }

  @Test("several graphs are controlled together")
  func graphs() throws {
    let (first, second) = (try graph(), try graph(name: "other"))
    let file = try commands([
      #"{ "command": "drain", "graph": "other", "at": "40ms" }"#, #"{ "command": "report", "at": "20ms" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", first, second, "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0, "\(result.errors)")
    let report = try #require(try answers(result.errors).first { $0["line"]?.value.integer == 2 })
    #expect(report["report"]?.value["runs"]?.array?.count == 2)
    #expect(try Sound(path: scratch.file("live.wav")).frames == 16_000)
    #expect(try Sound(path: scratch.file("other.wav")).frames == 640)
  }
}
