import Foundation
import Millrace
import Testing

/// `millrace run --control` with commands that are executed at a graph time.
@Suite("Control commands at graph times", .timeLimit(.minutes(30)))
struct ControlTimingTests: ControlSuite {
  let scratch = Scratch()

  @Test(
    "a parameter set at a graph time takes effect at exactly that sample, in every run", arguments: [1, 2])
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

  @Test("get returns the current value, and a ramp moves evenly to its target")
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

  @Test("invalid get and ramp commands are rejected with the cure")
  func invalidRamps() throws {
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
    let errors = answers.map { $0["error"]?.value.string ?? "" }
    let beginnings = [
      #""mute" of "gain" cannot be ramped"#, #""value" must be a number in a ramp ("over"), found "#,
      #""over" must be a time with a unit, found 100; write "300ms", "1.5s" or "2min""#,
      #""gain" (audio.gain) has no parameter "gian"; did you mean "gain"?"#,
      #"unknown member "over" in command "get"; its members are node, parameter, id, graph, instance, at"#,
    ]
    try #require(errors.count == beginnings.count, "\(errors)")
    for (error, beginning) in zip(errors, beginnings) { #expect(error.hasPrefix(beginning), "\(error)") }
  }

  @Test("on a virtual clock standard input is read before the start, so a pipe is exact too")
  func throughStandardInput() throws {
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", "-", in: scratch,
      shell: #"(sleep 0.2; echo '{ "command": "drain", "at": "300ms", "id": "end" }') | "$@""#)
    #expect(result.status == 0)
    #expect(result.errors == #"{"line":1,"id":"end","ok":true,"time":0.3}"# + "\n")
    #expect(try Sound(path: scratch.file("live.wav")).frames == 4_800)
  }

  @Test("a command whose time never comes is answered with the time at which the graph ended")
  func tooLate() throws {
    let file = try commands([#"{ "command": "interrupt", "at": "5s" }"#])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(result.status == 0)
    #expect(
      result.errors == #"{"line":1,"ok":false,"error":"the graph ended at 980 ms, before 5 s"}"# + "\n")
  }

  @Test("a reply is ducked, resumed and interrupted at the requested graph times")
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

  @Test("a file is mixed with the voice and stopped at the requested graph times")
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
      result.errors.contains(#"\"path\" of \"under\" cannot be 7; "#), "\(result.errors)")
    let sent = try Sound(path: scratch.file("out.wav")).samples
    let silence = [Int16](repeating: 0, count: 1_600)
    #expect(Array(sent.prefix(1_600)) == silence && Array(sent.suffix(3_200)) == silence + silence)
    #expect(Array(sent[1_600..<4_800]) == Array(music.samples.prefix(3_200)))
  }

  @Test("duck is rejected for a graph that plays no replies")
  func nothingToDuck() throws {
    let file = try commands([#"{ "command": "duck" }"#])
    let result = try RunnerProcess.run(
      "run", "-q", try graph(), "--clock", "virtual", "--control", file, in: scratch)
    #expect(
      try answers(result.errors).first?["error"]?.value.string?.hasPrefix(#"no node of "live" plays replies"#)
        == true)
  }
}
