import Foundation
import Millrace
import Testing

/// `millrace run --control` with `tap` and `untap`.
@Suite("Recording links by control commands", .timeLimit(.minutes(30)))
struct ControlTapTests: ControlSuite {
  let scratch = Scratch()

  @Test(
    "a link is recorded to a file while the graph runs: PCM as WAV, Opus as Ogg, events as JSON lines")
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

  @Test("answers to the pipe that commands come from are rejected", arguments: ["commands", "-"])
  func answersToItself(input: String) throws {
    let pipe = try makePipe("commands")
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--control", input, "--control-answers", pipe, in: scratch,
      shell: #""$@" <> commands"#)
    #expect(result.status == 2)
    #expect(
      result.errors
        == "error: control commands and answers cannot use the same pipe; choose another path for the answers\n"
    )
  }

  @Test("a recording that was stopped cannot be stopped again")
  func endedTap() throws {
    let tap = #"{ "command": "tap", "link": "tone -> gain", "file": "part.wav", "at": "#
    let untap = #"{ "command": "untap", "file": "part.wav", "at": "#
    let file = try commands([
      tap + #""100ms" }"#, untap + #""200ms" }"#, untap + #""300ms" }"#,
    ])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let lines = try answers(result.errors)
    #expect(lines.map { $0["ok"]?.value.bool } == [true, true, false], "\(result.errors)")
    #expect(lines.last?["error"]?.value.string == #"no link is being recorded to "part.wav""#)
    #expect(try Sound(path: scratch.file("part.wav")).frames == 1_600)
  }

  @Test("up to 64 links are recorded at a time, and the next one is rejected")
  func manyTaps() throws {
    let file = try commands(
      (0..<65).map { #"{ "command": "tap", "link": "tone -> gain", "file": "part\#($0).wav" }"# })
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    let lines = try answers(result.errors)
    #expect(lines.count { $0["ok"]?.value.bool == true } == 64, "\(result.errors)")
    #expect(
      lines.last?["error"]?.value.string
        == #"64 links are already being recorded; stop one of them with "untap""#)
    #expect(try scratch.bytes("part63.wav") == scratch.bytes("part0.wav"))
  }

  @Test("invalid taps are rejected")
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
    #expect(errors[3] == #"no link is being recorded to "y.wav""#)
    #expect(errors[4] == #"missing member "file"; add it"#)
    #expect(try Sound(path: scratch.file("live.wav")).frames == 16_000)
  }
}
