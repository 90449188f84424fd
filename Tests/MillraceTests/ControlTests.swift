import Foundation
import Glibc
import Millrace
import Testing

/// `millrace run --control`: a graph that runs is told what to do, line by line.
@Suite("Control of a running graph", .timeLimit(.minutes(30)))
struct ControlTests {
  private let scratch = Scratch()

  /// A tone through a gain into a file: for one second, or without end.
  private func graph(endless: Bool = false, name: String = "live") throws -> String {
    let length = endless ? "" : #", "duration": 1000"#
    let text = """
      { "millrace": 1, "name": "\(name)",
        "parameters": { "output": { "default": "\(name).wav" } },
        "nodes": {
          "tone": { "type": "audio.tone", "rate": 16000, "channels": 1, "pace": true\(length) },
          "gain": { "type": "audio.gain", "ramp": 0 },
          "out": { "type": "audio.write", "path": "${output}" }
        },
        "links": [ "tone -> gain -> out" ] }
      """
    return try scratch.write(text.utf8, to: "\(name).json")
  }

  /// Answers as objects, one a line.
  private func answers(_ text: String) throws -> [JSONObject] {
    try text.split(separator: "\n").filter { $0.hasPrefix("{") }.map { line in
      let document = try JSONDocument.scan(SourceFile(name: "answers", text: String(line)))
      return try #require(document.root.object)
    }
  }

  private func commands(_ lines: [String], to name: String = "commands.jsonl") throws -> String {
    try scratch.write(lines.joined(separator: "\n").utf8, to: name)
  }

  /// Writes to a named pipe as a shell would: opens, writes, goes.
  private func tell(_ pipe: String, _ text: String) throws {
    let descriptor = open(pipe, O_WRONLY | O_NONBLOCK)
    try #require(descriptor >= 0, "nobody reads the pipe")
    defer { close(descriptor) }
    #expect(write(descriptor, text, text.utf8.count) == text.utf8.count)
  }

  private func makePipe(_ name: String) throws -> String {
    try #require(mkfifo(scratch.file(name), 0o600) == 0)
    return scratch.file(name)
  }

  // MARK: In time

  @Test("a parameter set at a graph time takes effect at that very sample, in every run", arguments: [1, 2])
  func exact(workers: Int) throws {
    let path = try graph()
    let file = try commands([
      #"{ "command": "set", "node": "gain", "parameter": "mute", "value": true, "at": "500ms" }"#,
      #"{ "command": "set", "node": "gain", "parameter": "mute", "value": false, "at": "0.76s" }"#,
    ])
    var first: [UInt8] = []
    for _ in 0..<5 {
      let result = try RunnerProcess.run(
        "run", "-q", path, "--clock", "virtual", "--workers", "\(workers)", "--control", file, in: scratch)
      #expect(result.status == 0, "\(result.errors)")
      let bytes = try scratch.bytes("live.wav")
      if first.isEmpty { first = bytes }
      #expect(bytes == first)
    }
    let samples = try Sound(wav: first).samples
    #expect(samples.count == 16_000)
    #expect(samples[7_900..<8_000].contains { $0 != 0 })
    #expect(samples[8_000..<12_160].allSatisfy { $0 == 0 })
    #expect(samples[12_160..<12_260].contains { $0 != 0 })
  }

  @Test("get answers with the value of now, and a set over a time moves evenly to its target")
  func ramp() throws {
    func get(at time: String) -> String {
      #"{ "command": "get", "node": "gain", "parameter": "gain", "at": "\#(time)" }"#
    }
    let file = try commands([
      get(at: "100ms"),
      #"{ "command": "set", "node": "gain", "parameter": "gain", "value": -20, "over": "100ms", "at": "200ms" }"#,
      get(at: "255ms"), get(at: "400ms"),
      #"{ "command": "get", "node": "tone", "parameter": "duration" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let values = try answers(result.errors).map { ($0["line"]?.value.integer, $0["value"]?.value.double) }
    #expect(values.map(\.0) == [5, 1, 2, 3, 4])
    #expect(values.map(\.1) == [1_000, 0, nil, -10, -20])
  }

  @Test("get and over are refused with the cure where they make no sense")
  func rampRefusals() throws {
    let file = try commands([
      #"{ "command": "set", "node": "gain", "parameter": "mute", "value": 1, "over": "100ms" }"#,
      #"{ "command": "set", "node": "gain", "parameter": "gain", "value": true, "over": "100ms" }"#,
      #"{ "command": "set", "node": "gain", "parameter": "gain", "value": -6, "over": 100 }"#,
      #"{ "command": "get", "node": "gain", "parameter": "gian" }"#,
      #"{ "command": "get", "node": "gain", "parameter": "gain", "over": "1s" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    let answers = try answers(result.errors).sorted {
      $0["line"]!.value.integer! < $1["line"]!.value.integer!
    }
    #expect(
      answers.map { $0["error"]?.value.string } == [
        #""mute" of "gain" cannot be ramped, since it takes true or false; use set"#,
        #""value" is a number when there is "over", found true"#,
        #""over" is a time with its unit, found 100; write it as "300ms", "1.5s" or "2min""#,
        #""gain" (audio.gain) has no parameter "gian"; did you mean "gain"?"#,
        #""get" has no key "over"; its keys are node, parameter, id, graph, instance, at"#,
      ])
  }

  @Test("on a virtual clock standard input is read before the start, so that a pipe is exact as well")
  func throughStandardInput() throws {
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", "-", in: scratch,
      shell: #"(sleep 0.2; echo '{ "command": "drain", "at": "300ms", "id": "end" }') | "$@""#)
    #expect(result.status == 0)
    #expect(result.errors == #"{"line":1,"id":"end","ok":true,"time":0.3}"# + "\n")
    #expect(try Sound(path: scratch.file("live.wav")).frames == 4_800)
  }

  @Test("a command whose time never comes is answered, with when the graph ended")
  func tooLate() throws {
    let file = try commands([#"{ "command": "interrupt", "at": "5s" }"#])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    #expect(
      result.errors == #"{"line":1,"ok":false,"error":"the graph ended at 980 ms, before 5 s"}"# + "\n")
  }

  @Test("a reply is held and goes on, and is cut off, at the graph times that were asked for")
  func replies() throws {
    let graph = """
      { "millrace": 1, "name": "reply",
        "nodes": {
          "voice": { "type": "audio.read", "path": "in.wav", "reply": true, "pace": true },
          "play": { "type": "audio.play" },
          "heard": { "type": "audio.write", "path": "heard.wav" },
          "log": { "type": "event.log", "path": "log.jsonl" }
        },
        "links": [ "voice -> play", "play.reference -> heard", "play.events -> log.in1" ] }
      """
    _ = try scratch.write(Sound.made(rate: 16_000, frames: 32_000).wav, to: "in.wav")
    let path = try scratch.write(graph.utf8, to: "reply.json")
    let file = try commands([
      #"{ "command": "duck", "at": "400ms" }"#, #"{ "command": "resume", "at": "700ms" }"#,
      #"{ "command": "interrupt", "at": "1.5s" }"#,
    ])
    var first: [[UInt8]] = []
    for _ in 0..<3 {
      let result = try RunnerProcess.run(
        "run", "-q", path, "--clock", "virtual", "--control", file, "--duration", "2s", in: scratch)
      #expect(result.status == 0)
      #expect(
        try answers(result.errors).map { $0["time"]?.value.double } == [0.4, 0.7, 1.5], "\(result.errors)")
      let bytes = [try scratch.bytes("log.jsonl"), try scratch.bytes("heard.wav")]
      if first.isEmpty { first = bytes }
      #expect(bytes == first)
    }
    let log = String(decoding: first[0], as: UTF8.self)
    let names = ["replyAudible", "ducked", "resumed", "interrupted"]
    #expect(
      log.split(separator: "\n").compactMap { line in names.first { line.contains("\"\($0)\"") } } == names)
  }

  @Test("a file is played under the voice, and stopped, at the graph times that were asked for")
  func fileMix() throws {
    let graph = """
      { "millrace": 1, "name": "under",
        "nodes": {
          "mic": { "type": "audio.tone", "kind": "silence", "rate": 8000, "channels": 1, "duration": 1000 },
          "under": { "type": "audio.fileMix" },
          "out": { "type": "audio.write", "path": "out.wav" }
        },
        "links": [ "mic -> under -> out" ] }
      """
    let music = Sound.made(rate: 8_000, frames: 8_000)
    _ = try scratch.write(music.wav, to: "music.wav")
    let path = try scratch.write(graph.utf8, to: "under.json")
    let file = try commands([
      #"{ "command": "set", "node": "under", "parameter": "path", "value": "music.wav", "at": "200ms" }"#,
      #"{ "command": "set", "node": "under", "parameter": "path", "value": 7, "at": "400ms" }"#,
      #"{ "command": "set", "node": "under", "parameter": "path", "value": "", "at": "600ms" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", path, "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    #expect(
      result.errors.contains(#"\"path\" of \"under\" cannot be 7; it takes a string"#), "\(result.errors)")
    let sent = try Sound(path: scratch.file("out.wav")).samples
    let silence = [Int16](repeating: 0, count: 1_600)
    #expect(Array(sent.prefix(1_600)) == silence && Array(sent.suffix(3_200)) == silence + silence)
    #expect(Array(sent[1_600..<4_800]) == Array(music.samples.prefix(3_200)))
  }

  @Test("ducking a graph that plays no replies is refused")
  func nothingToDuck() throws {
    let file = try commands([#"{ "command": "duck" }"#])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(
      try answers(result.errors).first?["error"]?.value.string
        == #"no node of "live" plays replies, so there is nothing to duck; play them with audio.play"#)
  }

  // MARK: Live

  @Test(
    "writers of a named pipe come and go, with and without a last line break, and the run ends when told to")
  func pipe() throws {
    let (pipe, answers) = (try makePipe("control"), scratch.file("answers"))
    let process = try RunnerProcess(
      ["run", "-q", try graph(endless: true), "--control", pipe, "--control-answers", answers], in: scratch)
    func count() -> Int { (try? scratch.bytes("answers").count { $0 == 10 }) ?? 0 }
    try process.wait { (try? scratch.bytes("live.wav").count) ?? 0 > 44 }
    try tell(pipe, #"{ "command": "set", "node": "gain", "parameter": "gain", "value": -6 }"# + "\n")
    try process.wait { count() == 1 }
    try tell(pipe, #"{ "command": "repo"#)
    try process.wait { count() == 2 }
    try tell(pipe, #"{ "command": "interrupt", "id": [1] }"#)
    try process.wait { count() == 3 }
    try tell(pipe, "\n\n" + #"{ "command": "drain" }"#)
    let result = process.wait()
    #expect(result.status == 0 && result.errors.isEmpty && result.output.isEmpty)
    let told = try self.answers(String(decoding: scratch.bytes("answers"), as: UTF8.self))
    #expect(told.map { $0["ok"]?.value.bool } == [true, false, true, true])
    #expect(told.map { $0["line"]?.value.integer } == [1, 2, 3, 6])
    #expect(told[1]["error"]?.value.string?.contains("is not closed before the end of the line") == true)
    #expect(told[2]["id"]?.value.array?.count == 1)
    #expect(told.allSatisfy { ($0["time"] == nil) == ($0["ok"]?.value.bool == false) })
    #expect(try Sound(path: scratch.file("live.wav")).frames > 0)
  }

  @Test("a named pipe that nobody ever writes to, and answers that nobody reads, hold up nothing")
  func nobody() throws {
    let (pipe, answers) = (try makePipe("control"), try makePipe("answers"))
    let path = try graph()
    let silent = try RunnerProcess.run(
      "run", "-q", path, "--clock", "virtual", "--control", pipe, "--control-answers", answers, in: scratch)
    #expect(silent.status == 0 && silent.errors.isEmpty)
    // 64 KiB fit into a pipe; reports of 3,000 lines are far more.
    let file = try commands(Array(repeating: #"{ "command": "report" }"#, count: 3_000))
    let flooded = try RunnerProcess.run(
      "run", "-q", path, "--clock", "virtual", "--control", file, "--control-answers", answers, in: scratch)
    #expect(flooded.status == 0)
    #expect(
      flooded.errors.hasPrefix("control: ")
        && flooded.errors.hasSuffix(" answers found nobody to read them\n"))
  }

  @Test("answers that a full disk refuses are told with the reason, and hold up nothing")
  func full() throws {
    let file = try commands([#"{ "command": "report" }"#, #"{ "command": "drain" }"#])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, "--control-answers", "/dev/full",
      in: scratch)
    #expect(result.status == 0)
    #expect(
      result.errors
        == "control: 2 answers could not be written: No space left on device (errno 28); make room, or choose another place\n"
    )
  }

  @Test("the end of standard input ends the control, not the run; stop ends the run at once, with 0")
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

  // MARK: Whom it is for

  @Test("one instance can be meant, or all, and what does not exist is refused with what does")
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
    let told = try answers(one.errors)
    func answer(_ line: Int64) throws -> JSONObject {
      try #require(told.first { $0["line"]?.value.integer == line })
    }
    #expect(try answer(1)["ok"]?.value.bool == true)
    #expect(try answer(2)["report"]?.value["runs"]?.array?.count == 1)
    #expect(try answer(3)["error"]?.value.string == #"no graph is named "other"; there is "live""#)
    #expect(try answer(4)["error"]?.value.string == "instance 4 is out of range; there are 3, from 1 to 3")
    #expect(try answer(5)["error"]?.value.string == #"no graph is named "lives"; did you mean "live"?"#)
    for instance in 1...3 {
      let isSilent = try Sound(path: scratch.file("of-\(instance).wav")).samples.allSatisfy { $0 == 0 }
      #expect(isSilent == (instance == 2))
    }
  }

  @Test("several graphs run under one control")
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

  // MARK: Bad input

  @Test("every bad line gets one answer that says what is wrong, and the graph goes on")
  func badLines() throws {
    let set = #"{ "command": "set", "node": "gain", "parameter": "#
    let lines: [(line: String, column: Int64?, words: String)] = [
      (#"{ "command": "sett" }"#, 14, #"there is no command "sett"; did you mean "set"?"#),
      (
        #"{ "command": "dance" }"#, 14,
        #"there is no command "dance"; there are set, get, send, interrupt, duck, resume, tap, untap, add, remove, relink, report, drain, stop"#
      ),
      (#"{ "comand": "set" }"#, 1, #"the line has no "command"; write "command" in place of "comand""#),
      (#"{ "command": 7 }"#, 14, #""command" is text, found a number"#),
      ("[1]", 1, #"a command is an object, found an array; write { "command": "report" }"#),
      (
        #"{ "command": "stop"#, 14,
        "the string that starts here is not closed before the end of the line; close it with '\"'"
      ),
      (
        #"{ "command": "stop" "at": "1s" }"#, 21,
        "expected ',' or '}' after the value of \"command\", found '\"'"
      ),
      (#"{ "command": "stop", "att": "1s" }"#, 22, #""stop" has no key "att"; did you mean "at"?"#),
      (
        #"{ "command": "stop", "at": 1.5 }"#, 28,
        #""at" is a graph time with its unit, found 1.5; write it as "500ms", "1.5s" or "2min""#
      ),
      (
        #"{ "command": "stop", "instance": 0 }"#, 34, #""instance" is a whole number from 1, found 0"#
      ),
      (
        #"{ "command": "stop", "instance": 2 }"#, nil,
        "instance 2 is out of range; there is one, number 1"
      ),
      (#"{ "command": "set", "node": "gain" }"#, 1, #"the command has no "parameter"; add it"#),
      (set + #""gain" }"#, 1, #"the command has no "value"; add it"#),
      (
        set + #""gain", "value": null }"#, 67,
        #""value" is true or false, a number, text or a list, found null"#
      ),
      (
        set + #""gain", "value": true }"#, nil,
        #""gain" of "gain" cannot be true; it takes a number from -120.0 to 60.0 dB"#
      ),
      (
        set + #""gain", "value": 61 }"#, nil,
        #""gain" of "gain" cannot be 61; it takes a number from -120.0 to 60.0 dB"#
      ),
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
        #""frequency" of "tone" cannot be set while the graph runs; it has no live parameter"#
      ),
      (
        #"{ "command": "send", "node": "gain", "text": 5 }"#, 46,
        #""text" is text, an object or a list, found a number"#
      ),
    ]
    let file = try commands(lines.map(\.line))
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let told = try answers(result.errors).sorted {
      $0["line"]?.value.integer ?? 0 < $1["line"]?.value.integer ?? 0
    }
    try #require(told.count == lines.count, "\(result.errors)")
    for (answer, line) in zip(told, lines) {
      #expect(answer["ok"]?.value.bool == false)
      #expect(answer["error"]?.value.string == line.words, "\(line.line)")
      #expect(answer["column"]?.value.integer == line.column, "\(line.line)")
    }
    #expect(try Sound(path: scratch.file("live.wav")).frames == 16_000)
  }

  @Test("binary garbage, endless lines and control characters are refused line by line, in bounded memory")
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
      !result.errors.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" }, "nothing steers a terminal")
    let told = try answers(result.errors)
    #expect(told.count == garbageLines + 2)
    let words = "the line is longer than 1573888 bytes; send less at once"
    #expect(told.contains { $0["error"]?.value.string == words })
    #expect(told.count { $0["ok"]?.value.bool == true } == 1)
  }

  @Test("an input that cannot be read, or answers that cannot be written, are a wrong call")
  func wrongCalls() throws {
    let path = try graph()
    let missing = try RunnerProcess.run("run", "-q", path, "--control", "none", in: scratch)
    #expect(missing.status == 2)
    #expect(
      missing.errors
        == "error: cannot read control commands from \"none\": No such file or directory (errno 2); name a pipe made with mkfifo, a file, or - for standard input\n"
    )
    let folder = try RunnerProcess.run("run", "-q", path, "--control", ".", in: scratch)
    #expect(folder.status == 2 && folder.errors.contains("\".\": it is a folder; "))
    let answers = try RunnerProcess.run(
      "run", "-q", path, "--control", "-", "--control-answers", "none/here", in: scratch)
    #expect(
      answers.status == 2 && answers.errors.contains("cannot write the control answers to \"none/here\": "))
    let alone = try RunnerProcess.run("run", "-q", path, "--control-answers", "here", in: scratch)
    #expect(alone.status == 2 && alone.errors.contains("--control"))
  }

  // MARK: Taps

  @Test(
    "a link can be recorded to a file while the graph runs: sound as WAV, Opus as Ogg, events as JSON lines")
  func taps() throws {
    let graph = """
      { "millrace": 1, "name": "tapped",
        "nodes": {
          "tone": { "type": "audio.tone", "rate": 16000, "channels": 1, "duration": 1000, "kind": "noise" },
          "meter": { "type": "audio.level", "window": 100 },
          "log": { "type": "event.log", "path": "log.jsonl" },
          "enc": { "type": "opus.encode" },
          "out": { "type": "ogg.write", "path": "whole.opus" },
          "wav": { "type": "audio.write", "path": "whole.wav" }
        },
        "links": [ "tone -> meter -> enc -> out", "tone -> wav", "meter.events -> log.in1" ] }
      """
    let path = try scratch.write(graph.utf8, to: "tapped.json")
    let file = try commands([
      #"{ "command": "tap", "link": "tone -> meter", "file": "all.wav" }"#,
      #"{ "command": "tap", "link": "tone -> meter", "file": "part.wav", "at": "400ms" }"#,
      #"{ "command": "untap", "file": "part.wav", "at": "700ms" }"#,
      #"{ "command": "tap", "link": "enc -> out", "file": "copy.opus" }"#,
      #"{ "command": "tap", "link": "meter.events -> log.in1", "file": "copy.jsonl" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", path, "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    #expect(try answers(result.errors).allSatisfy { $0["ok"]?.value.bool == true }, "\(result.errors)")
    #expect(try scratch.bytes("all.wav") == scratch.bytes("whole.wav"))
    #expect(try scratch.bytes("copy.jsonl") == scratch.bytes("log.jsonl"))
    let whole = try Sound(path: scratch.file("whole.wav")).samples
    #expect(try Sound(path: scratch.file("part.wav")).samples == Array(whole[6_400..<11_200]))
    for name in ["whole", "copy"] {
      try runGraph(
        Package.graph("voice-return"),
        ["input": scratch.file("\(name).opus"), "output": scratch.file("\(name)-decoded.wav")])
    }
    #expect(try scratch.bytes("whole-decoded.wav") == scratch.bytes("copy-decoded.wav"))
  }

  @Test("answers into the pipe that commands come from are refused", arguments: ["commands", "-"])
  func answersToItself(input: String) throws {
    let pipe = try makePipe("commands")
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--control", input, "--control-answers", pipe, in: scratch,
      shell: #""$@" <> commands"#)
    #expect(result.status == 2)
    #expect(
      result.errors
        == "error: cannot write the control answers into the pipe that the commands come from; choose another place\n"
    )
  }

  @Test("a recording that was ended cannot be ended again")
  func endedTap() throws {
    let tap = #"{ "command": "tap", "link": "tone -> gain", "file": "part.wav", "at": "#
    let untap = #"{ "command": "untap", "file": "part.wav", "at": "#
    let file = try commands([
      tap + #""100ms" }"#, untap + #""200ms" }"#, untap + #""300ms" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let told = try answers(result.errors)
    #expect(told.map { $0["ok"]?.value.bool } == [true, true, false], "\(result.errors)")
    #expect(told.last?["error"]?.value.string == #"nothing is recorded into "part.wav""#)
    #expect(try Sound(path: scratch.file("part.wav")).frames == 1_600)
  }

  @Test("as many links are recorded at a time as there is room for, and the next one is refused in words")
  func manyTaps() throws {
    let file = try commands(
      (0..<65).map { #"{ "command": "tap", "link": "tone -> gain", "file": "part\#($0).wav" }"# })
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let told = try answers(result.errors)
    #expect(told.count { $0["ok"]?.value.bool == true } == 64, "\(result.errors)")
    #expect(
      told.last?["error"]?.value.string == "64 links are recorded already; end one of them with untap")
    #expect(try scratch.bytes("part63.wav") == scratch.bytes("part0.wav"))
  }

  @Test("a tap that cannot be is refused in words")
  func wrongTaps() throws {
    let file = try commands([
      #"{ "command": "tap", "link": "tone -> gian", "file": "x.wav" }"#,
      #"{ "command": "tap", "link": "tone -> gain", "file": "none/x.wav" }"#,
      #"{ "command": "tap", "link": "tone -> gain", "file": "live.wav" }"#,
      #"{ "command": "untap", "file": "y.wav" }"#,
      #"{ "command": "tap", "link": "tone -> gain" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    let errors = try answers(result.errors).sorted {
      $0["line"]?.value.integer ?? 0 < $1["line"]?.value.integer ?? 0
    }.map { $0["error"]?.value.string ?? "" }
    try #require(errors.count == 5, "\(result.errors)")
    #expect(errors[0] == #"no link is named "tone -> gian"; did you mean "tone -> gain"?"#)
    #expect(errors[1].contains("none"))
    #expect(errors[2].contains("live.wav"))
    #expect(errors[3] == #"nothing is recorded into "y.wav""#)
    #expect(errors[4] == #"the command has no "file"; add it"#)
    #expect(try Sound(path: scratch.file("live.wav")).frames == 16_000)
  }
}
