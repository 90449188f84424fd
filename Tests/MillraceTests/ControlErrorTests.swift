import Foundation
import Millrace
import Testing

/// `millrace run --control` with invalid input.
@Suite("Invalid control commands", .timeLimit(.minutes(30)))
struct ControlErrorTests: ControlSuite {
  let scratch = Scratch()

  @Test("every invalid line gets one answer with the error, and the graph continues")
  func badLines() throws {
    let set = #"{ "command": "set", "node": "gain", "parameter": "#
    // Each with the column and the beginning of the error. The JSON scanner and the engine have tests for their own texts.
    let lines: [(line: String, column: Int64?, beginning: String)] = [
      (#"{ "command": "sett" }"#, 14, #"unknown command "sett"; did you mean "set"?"#),
      (
        #"{ "command": "dance" }"#, 14,
        #"unknown command "dance"; the commands are set, get, send, interrupt, duck, resume, tap, untap, add, "#
      ),
      (#"{ "comand": "set" }"#, 1, #"missing member "command"; write "command" instead of "comand""#),
      (#"{ "command": 7 }"#, 14, #""command" must be a string, found a number"#),
      ("[1]", 1, #"a command must be an object, found "#),
      (#"{ "command": "stop"#, 14, ""),
      (#"{ "command": "stop" "at": "1s" }"#, 21, ""),
      (
        #"{ "command": "stop", "att": "1s" }"#, 22,
        #"unknown member "att" in command "stop"; did you mean "at"?"#
      ),
      (
        #"{ "command": "stop", "at": 1.5 }"#, 28,
        #""at" must be a graph time with a unit, found 1.5; write "500ms", "1.5s" or "2min""#
      ),
      (#"{ "command": "stop", "instance": 0 }"#, 34, #""instance" must be a positive integer, found 0"#),
      (
        #"{ "command": "stop", "instance": 2 }"#, nil,
        "instance 2 is out of range; there is only instance 1"
      ),
      (#"{ "command": "set", "node": "gain" }"#, 1, #"missing member "parameter"; add it"#),
      (set + #""gain" }"#, 1, #"missing member "value"; add it"#),
      (
        set + #""gain", "value": null }"#, 67,
        #""value" must be a Boolean, a number, a string or an array, found null"#
      ),
      (set + #""gain", "value": true }"#, nil, #""gain" of "gain" cannot be true; "#),
      (set + #""gain", "value": 61 }"#, nil, #""gain" of "gain" cannot be 61; "#),
      (
        set + #""gian", "value": 1 }"#, nil,
        #""gain" (audio.gain) has no parameter "gian"; did you mean "gain"?"#
      ),
      (
        #"{ "command": "set", "node": "gin", "parameter": "gain", "value": 1 }"#, nil,
        #"no node is named "gin"; did you mean "gain"?"#
      ),
      (
        #"{ "command": "set", "node": "tone", "parameter": "frequency", "value": 1 }"#, nil,
        #""frequency" of "tone" cannot be set while the graph runs; "#
      ),
      (
        #"{ "command": "send", "node": "gain", "text": 5 }"#, 46,
        #""text" must be a string, an object or an array, found a number"#
      ),
    ]
    let file = try commands(lines.map(\.line))
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let answers = try answers(result.errors).sorted {
      $0["line"]?.value.integer ?? 0 < $1["line"]?.value.integer ?? 0
    }
    try #require(answers.count == lines.count, "\(result.errors)")
    for (answer, line) in zip(answers, lines) {
      #expect(answer["ok"]?.value.bool == false)
      let error = answer["error"]?.value.string ?? ""
      #expect(!error.isEmpty && error.hasPrefix(line.beginning), "\(line.line): \(error)")
      #expect(answer["column"]?.value.integer == line.column, "\(line.line)")
    }
    #expect(try Sound(path: scratch.file("live.wav")).frames == 16_000)
  }

  @Test("binary garbage, endless lines and control characters are rejected line by line, in bounded memory")
  func garbage() throws {
    var bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13) }
    let garbageLines = bytes.split(separator: 10, omittingEmptySubsequences: false)
      .count { line in line.contains { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D } }
    bytes += [10] + Array(repeating: UInt8(ascii: "x"), count: 2_000_000) + [10]
    bytes += Array(#"{ "command": "interrupt" }"#.utf8)
    let file = try scratch.write(bytes, to: "garbage")
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    #expect(
      !result.errors.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" }, "no control characters")
    let answers = try answers(result.errors)
    #expect(answers.count == garbageLines + 2)
    let tooLong = "the line is longer than 1573888 bytes; send shorter lines"
    #expect(answers.contains { $0["error"]?.value.string == tooLong })
    #expect(answers.count { $0["ok"]?.value.bool == true } == 1)
  }

  @Test("an input that cannot be read, or answers that cannot be written, are usage errors")
  func wrongCalls() throws {
    let path = try graph()
    let missing = try RunnerProcess.run("run", "-q", path, "--control", "none", in: scratch)
    #expect(missing.status == 2)
    #expect(
      missing.errors
        == "error: cannot read control commands from \"none\": No such file or directory (errno 2); name a file, a named pipe (mkfifo), or - for standard input\n"
    )
    let folder = try RunnerProcess.run("run", "-q", path, "--control", ".", in: scratch)
    #expect(folder.status == 2 && folder.errors.contains("\".\": it is a directory; "))
    let answers = try RunnerProcess.run(
      "run", "-q", path, "--control", "-", "--control-answers", "none/here", in: scratch)
    #expect(
      answers.status == 2 && answers.errors.contains("cannot write control answers to \"none/here\": "))
    let alone = try RunnerProcess.run("run", "-q", path, "--control-answers", "here", in: scratch)
    #expect(alone.status == 2 && alone.errors.contains("--control"))
  }
}
