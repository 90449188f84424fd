import Foundation
import Glibc
import MillraceTesting
import Testing

/// A slip in a file's name destroys nothing that the run, or somebody else, needs.
@Suite("What a run writes takes no other file's place", .timeLimit(.minutes(30)))
struct SafeFilesTests {
  private let scratch = Scratch()

  private func graph() throws -> String {
    _ = try scratch.write(Sound.made(rate: 16_000, frames: 16_000).wav, to: "in.wav")
    let text = """
      { "millrace": 1, "name": "safe",
        "parameters": { "to": { "default": "out.wav", "type": "path" } },
        "nodes": {
          "in": { "type": "audio.read", "path": "in.wav" },
          "part": { "type": "graph", "path": "part.json" },
          "out": { "type": "audio.write", "path": "${to}" }
        },
        "links": [ "in -> part -> out" ] }
      """
    let part = """
      { "millrace": 1, "nodes": { "gain": { "type": "audio.gain" } }, "links": [],
        "expose": { "in": "gain", "out": "gain.out" } }
      """
    _ = try scratch.write(part.utf8, to: "part.json")
    return try scratch.write(text.utf8, to: "graph.json")
  }

  private let taken = "this run or another program reads or writes it; choose another place"

  @Test(
    "a report or trace in place of a graph, an included graph, commands or sound is refused, and they stay",
    arguments: [
      (["--report", "graph.json"], "graph.json", Int32(2)), (["--report", "part.json"], "part.json", 2),
      (["--trace", "graph.json"], "graph.json", 2), (["--trace", "./part.json"], "./part.json", 2),
      (["--control", "commands.json", "--report", "commands.json"], "commands.json", 2),
      (["--trace", "in.wav"], "in.wav", 1),
      (["--report", "same.json", "--trace", "same.json"], "same.json", 2),
    ])
  func takesPlace(arguments: [String], file: String, status: Int32) throws {
    let path = try graph()
    let commands = #"{ "command": "report" }"#
    _ = try scratch.write(commands.utf8, to: "commands.json")
    _ = try scratch.write("earlier".utf8, to: "same.json")
    let before = try scratch.bytes(file)
    let result = try RunnerProcess(["run", "-q", path] + arguments, in: scratch).wait()
    #expect(result.status == status, "\(result.errors)")
    if status == 2 {
      #expect(result.errors == "error: cannot write \"\(file)\": \(taken)\n")
    }
    #expect(try scratch.bytes(file) == before)
  }

  @Test("answers in place of their commands are refused, and the commands stay")
  func answers() throws {
    let path = try graph()
    let commands = #"{ "command": "report" }"#
    _ = try scratch.write(commands.utf8, to: "commands")
    let result = try RunnerProcess(
      ["run", "-q", path, "--control", "commands", "--control-answers", "commands"], in: scratch
    ).wait()
    #expect(result.status == 2)
    #expect(result.problems == ["error: cannot write the control answers to \"commands\": \(taken)"])
    #expect(try scratch.bytes("commands") == Array(commands.utf8))
  }

  @Test("a node or a tap that would write over the graph is refused, and the graph stays")
  func nodes() throws {
    let path = try graph()
    let before = try scratch.bytes("graph.json")
    let node = try RunnerProcess(["run", "-q", path, "--set", "to=graph.json"], in: scratch).wait()
    #expect(node.status == 1)
    #expect(node.errors.contains("\"graph.json\" is being read or written by another node or program"))
    let tap = #"{ "command": "tap", "link": "in -> part.gain", "file": "graph.json" }"#
    let commands = try scratch.write(tap.utf8, to: "commands")
    let tapped = try RunnerProcess(["run", "-q", path, "--control", commands], in: scratch).wait()
    #expect(tapped.errors.contains(#""ok":false"#), "\(tapped.errors)")
    #expect(tapped.errors.contains("is being read or written by another node or program"))
    #expect(try scratch.bytes("graph.json") == before)
  }

  @Test(
    "pictures and the file of a loudspeaker take the place of nothing the run reads or writes",
    arguments: ["image.write", "audio.play"],
    ["graph.json", "part.json", "commands", "in.wav", "other.wav"])
  func otherNodes(type: String, file: String) throws {
    _ = try graph()
    let writer =
      type == "image.write"
      ? #""eye": { "type": "video.capture", "source": "test", "width": 64, "height": 64 },"#
        + #""look": { "type": "video.sample" }, "end": { "type": "image.write", "path": "\#(file)" }"#
      : #""tone": { "type": "audio.tone", "duration": 200 }, "#
        + #""end": { "type": "audio.play", "device": "file", "path": "\#(file)" }"#
    let text = """
      { "millrace": 1, "nodes": {
          "in": { "type": "audio.read", "path": "in.wav", "pace": true },
          "part": { "type": "graph", "path": "part.json" },
          "out": { "type": "audio.write", "path": "other.wav" },
          \(writer)
        },
        "links": [ "in -> part -> out", "\(type == "image.write" ? "eye -> look" : "tone") -> end" ] }
      """
    _ = try scratch.write(text.utf8, to: "graph.json")
    _ = try scratch.write(#"{ "command": "drain", "at": "300ms" }"#.utf8, to: "commands")
    let before = try scratch.bytes(file == "other.wav" ? "in.wav" : file)
    let result = try RunnerProcess(["run", "-q", "graph.json", "--control", "commands"], in: scratch).wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("by another node or program; "), "\(result.errors)")
    if file != "other.wav" { #expect(try scratch.bytes(file) == before) }
  }

  @Test("a tap does not take the place of the commands it was asked for in")
  func commandsOfTap() throws {
    let commands = #"{ "command": "tap", "link": "in -> part.gain", "file": "commands" }"#
    let path = try graph()
    _ = try scratch.write(commands.utf8, to: "commands")
    let result = try RunnerProcess(["run", "-q", path, "--control", "commands"], in: scratch).wait()
    #expect(result.errors.contains(#""ok":false"#), "\(result.errors)")
    #expect(try scratch.bytes("commands") == Array(commands.utf8))
  }

  @Test("a drawing does not take its graph's place")
  func drawing() throws {
    let path = try graph()
    let before = try scratch.bytes("graph.json")
    let result = try RunnerProcess(["draw", path, "-o", "graph.json"], in: scratch).wait()
    #expect(result.status == 2)
    #expect(result.problems == ["error: cannot write \"graph.json\": \(taken)"])
    #expect(try scratch.bytes("graph.json") == before)
  }

  @Test("an earlier report, trace and answers outlive a graph that never starts, and not one that does")
  func earlier() throws {
    let path = try graph()
    let files = ["report.json", "trace.json", "answers"]
    let old = Array(String(repeating: "old ", count: 100_000).utf8)
    for file in files { _ = try scratch.write(old, to: file) }
    let arguments = [
      "run", "-q", path, "--report", files[0], "--trace", files[1], "--control", "/dev/null",
      "--control-answers", files[2],
    ]
    let refused = try RunnerProcess(arguments + ["--set", "to=no/such/place.wav"], in: scratch).wait()
    #expect(refused.status == 1, "\(refused.errors)")
    for file in files { #expect(try scratch.bytes(file) == old) }
    let done = try RunnerProcess(arguments, in: scratch).wait()
    #expect(done.status == 0, "\(done.errors)")
    for file in files { #expect(try !scratch.bytes(file).starts(with: "old".utf8)) }
    #expect(try scratch.bytes("trace.json").suffix(3) == Array("\n]\n".utf8))
  }

  @Test(
    "standard output that has no room is told and ends with 2; a reader that has gone is no mistake",
    arguments: [["schema"], ["nodes"], ["nodes", "opus.encode", "--json"], ["--help"], ["--version"]])
  func fullOutput(arguments: [String]) throws {
    let full = try RunnerProcess(arguments, in: scratch, shell: #""$@" > /dev/full"#).wait()
    #expect(full.status == 2)
    #expect(
      full.errors
        == "error: cannot write standard output: No space left on device (errno 28); make room or lead it to another place\n"
    )
    let gone = try RunnerProcess(arguments, in: scratch, shell: #""$@" | true; exit ${PIPESTATUS[0]}"#).wait()
    #expect(gone.status == 0 && gone.errors.isEmpty, "\(gone.errors)")
  }

  @Test(
    "a named pipe that nobody reads is refused and not waited for",
    arguments: [["--trace", "out"], ["--report", "out.json"]]
  )
  func unreadPipe(arguments: [String]) throws {
    try #require(mkfifo(scratch.file(arguments[1]), 0o600) == 0)
    let result = try RunnerProcess(["run", "-q", graph()] + arguments, in: scratch).wait()
    #expect(result.status == 2)
    #expect(
      result.errors
        == "error: cannot write \"\(arguments[1])\": it is a named pipe, and nobody reads it; start its reader first\n"
    )
  }

  @Test("a named pipe gets the whole trace, however slowly it is read")
  func slowPipe() throws {
    try #require(mkfifo(scratch.file("out"), 0o600) == 0)
    // The reader pauses behind the first line. A minute's trace is some megabytes, a pipe holds 64 KiB.
    let result = try RunnerProcess.run(
      "run", "-q", tone(duration: 60_000), "--trace", "out", in: scratch,
      shell: #"{ read -r first; sleep 1; echo "$first"; cat; } < out > copy & "$@"; s=$?; wait; exit $s"#)
    #expect(result.status == 0, "\(result.errors)")
    let text = String(decoding: try scratch.bytes("copy"), as: UTF8.self)
    #expect(text.hasPrefix("[\n") && text.hasSuffix("\n]\n"))
    // A call for every packet of 20 ms, at least.
    #expect(text.split(separator: "\n").count { $0.contains(#""name":"tone","cat""#) } >= 3_000)
  }

  /// A tone into nothing, as fast as the machine.
  private func tone(duration: Int) throws -> String {
    let text = """
      { "millrace": 1, "name": "tone", "clock": "virtual",
        "nodes": { "tone": { "type": "audio.tone", "duration": \(duration) }, "end": { "type": "flow.null" } },
        "links": [ "tone -> end" ] }
      """
    return try scratch.write(text.utf8, to: "tone.json")
  }

  @Test("a run that was asked to end does not wait for a reader who has stopped reading its trace")
  func stuckPipe() throws {
    try #require(mkfifo(scratch.file("out"), 0o600) == 0)
    // A reader who takes nothing, and not a byte of room: the trace waits with its first one.
    let reader = open(scratch.file("out"), O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    let page = [UInt8](repeating: 10, count: 4_096)
    while write(reader, page, page.count) > 0 {}
    let process = try RunnerProcess(
      ["run", "-q", tone(duration: 86_400_000), "--trace", "out"], in: scratch,
      shell: #"XDG_RUNTIME_DIR=$PWD exec "$@""#)
    // The place that `top` asks is there before the trace begins, and signals are heeded before that.
    try process.wait {
      (try? FileManager.default.contentsOfDirectory(atPath: scratch.file("millrace")).isEmpty) == false
    }
    process.send(SIGTERM)
    let result = process.wait()
    #expect(result.status == 2)
    #expect(
      result.errors
        == "error: the trace could not be written: it is a pipe whose reader has stopped reading; make room or choose another place\n"
    )
  }

  @Test("figures that were kept outlive a measurement that is broken off")
  func keptFigures() throws {
    let old = Array("earlier".utf8)
    let kept = try scratch.write(old, to: "kept.jsonl")
    let process = try RunnerProcess(
      ["bench", "soak", "--save", kept], in: scratch, shell: #"exec "$@" > lines"#)
    // The first line comes behind the look at the file, minutes before the first figure.
    try process.wait { (try? scratch.bytes("lines").isEmpty) == false }
    process.send(SIGINT)
    #expect(process.wait().status == 128 + SIGINT)
    #expect(try scratch.bytes("kept.jsonl") == old)
  }

  @Test("a file at the limit of its size is told, not the end of the program")
  func sizeLimit() throws {
    let path = try graph()
    let result = try RunnerProcess(["run", "-q", path], in: scratch, shell: #"ulimit -f 8; exec "$@""#).wait()
    #expect(result.status == 3)
    #expect(result.errors.contains("File too large (errno 27)"), "\(result.errors)")
  }

  @Test("a refused check keeps its status when its words cannot be written, too")
  func fullOutputOfCheck() throws {
    let path = try graph()
    _ = try scratch.write("{".utf8, to: "wrong.json")
    let good = try RunnerProcess(["check", path], in: scratch, shell: #""$@" > /dev/full"#).wait()
    #expect(good.status == 2)
    let wrong = try RunnerProcess(
      ["check", path, scratch.file("wrong.json")], in: scratch, shell: #""$@" > /dev/full"#
    ).wait()
    #expect(wrong.status == 1)
    #expect(wrong.errors.contains("error: cannot write standard output"))
  }
}
