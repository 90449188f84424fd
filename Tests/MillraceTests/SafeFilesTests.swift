import Foundation
import Glibc
import MillraceTesting
import Testing

/// A wrong file name does not destroy a file that the run or another program needs.
@Suite("A run does not overwrite files in use", .timeLimit(.minutes(30)))
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

  private let inUse = "it is in use by this run or another program; choose another path"

  @Test(
    "a report or trace does not overwrite a graph, an included graph, commands or sound",
    arguments: [
      (["--report", "graph.json"], "graph.json", Int32(2)), (["--report", "part.json"], "part.json", 2),
      (["--trace", "graph.json"], "graph.json", 2), (["--trace", "./part.json"], "./part.json", 2),
      (["--control", "commands.json", "--report", "commands.json"], "commands.json", 2),
      (["--trace", "in.wav"], "in.wav", 1),
      (["--report", "same.json", "--trace", "same.json"], "same.json", 2),
    ])
  func overwrites(arguments: [String], file: String, status: Int32) throws {
    let path = try graph()
    let commands = #"{ "command": "report" }"#
    _ = try scratch.write(commands.utf8, to: "commands.json")
    _ = try scratch.write("earlier".utf8, to: "same.json")
    let before = try scratch.bytes(file)
    let result = try RunnerProcess(["run", "-q", path] + arguments, in: scratch).wait()
    #expect(result.status == status, "\(result.errors)")
    if status == 2 {
      #expect(result.errors == "error: cannot write \"\(file)\": \(inUse)\n")
    }
    #expect(try scratch.bytes(file) == before)
  }

  @Test("answers do not overwrite their commands")
  func answers() throws {
    let path = try graph()
    let commands = #"{ "command": "report" }"#
    _ = try scratch.write(commands.utf8, to: "commands")
    let result = try RunnerProcess(
      ["run", "-q", path, "--control", "commands", "--control-answers", "commands"], in: scratch
    ).wait()
    #expect(result.status == 2)
    #expect(result.problems == ["error: cannot write control answers to \"commands\": \(inUse)"])
    #expect(try scratch.bytes("commands") == Array(commands.utf8))
  }

  @Test("a node or a tap does not overwrite the graph")
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
    "pictures and the file of a loudspeaker do not overwrite what the run reads or writes",
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

  @Test("a tap does not overwrite the commands that requested it")
  func commandsOfTap() throws {
    let commands = #"{ "command": "tap", "link": "in -> part.gain", "file": "commands" }"#
    let path = try graph()
    _ = try scratch.write(commands.utf8, to: "commands")
    let result = try RunnerProcess(["run", "-q", path, "--control", "commands"], in: scratch).wait()
    #expect(result.errors.contains(#""ok":false"#), "\(result.errors)")
    #expect(try scratch.bytes("commands") == Array(commands.utf8))
  }

  @Test("a drawing does not overwrite its graph")
  func drawing() throws {
    let path = try graph()
    let before = try scratch.bytes("graph.json")
    let result = try RunnerProcess(["draw", path, "-o", "graph.json"], in: scratch).wait()
    #expect(result.status == 2)
    #expect(result.problems == ["error: cannot write \"graph.json\": \(inUse)"])
    #expect(try scratch.bytes("graph.json") == before)
  }

  @Test("an earlier report, trace and answers survive a graph that never starts, but not one that does")
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
    "a full standard output is reported with status 2; a closed one is not an error",
    arguments: [["schema"], ["nodes"], ["nodes", "opus.encode", "--json"], ["--help"], ["--version"]])
  func fullOutput(arguments: [String]) throws {
    let full = try RunnerProcess(arguments, in: scratch, shell: #""$@" > /dev/full"#).wait()
    #expect(full.status == 2)
    #expect(
      full.errors
        == "error: cannot write standard output: No space left on device (errno 28); free some space or redirect it\n"
    )
    let gone = try RunnerProcess(arguments, in: scratch, shell: #""$@" | true; exit ${PIPESTATUS[0]}"#).wait()
    #expect(gone.status == 0 && gone.errors.isEmpty, "\(gone.errors)")
  }

  @Test(
    "a named pipe without a reader is rejected",
    arguments: [["--trace", "out"], ["--report", "out.json"]]
  )
  func unreadPipe(arguments: [String]) throws {
    try #require(mkfifo(scratch.file(arguments[1]), 0o600) == 0)
    let result = try RunnerProcess(["run", "-q", graph()] + arguments, in: scratch).wait()
    #expect(result.status == 2)
    #expect(
      result.errors
        == "error: cannot write \"\(arguments[1])\": it is a named pipe without a reader; start the reader first\n"
    )
  }

  @Test("a named pipe gets the complete trace, however slow its reader is")
  func slowPipe() throws {
    try #require(mkfifo(scratch.file("out"), 0o600) == 0)
    // The reader pauses after the first line. The trace of a minute has some megabytes, and a pipe holds 64 KiB.
    let result = try RunnerProcess.run(
      "run", "-q", tone(duration: 60_000), "--trace", "out", in: scratch,
      shell: #"{ read -r first; sleep 1; echo "$first"; cat; } < out > copy & "$@"; s=$?; wait; exit $s"#)
    #expect(result.status == 0, "\(result.errors)")
    let text = String(decoding: try scratch.bytes("copy"), as: UTF8.self)
    #expect(text.hasPrefix("[\n") && text.hasSuffix("\n]\n"))
    // A call for every packet of 20 ms, at least.
    #expect(text.split(separator: "\n").count { $0.contains(#""name":"tone","cat""#) } >= 3_000)
  }

  /// A graph that discards a tone, as fast as possible.
  private func tone(duration: Int) throws -> String {
    let text = """
      { "millrace": 1, "name": "tone", "clock": "virtual",
        "nodes": { "tone": { "type": "audio.tone", "duration": \(duration) }, "end": { "type": "flow.null" } },
        "links": [ "tone -> end" ] }
      """
    return try scratch.write(text.utf8, to: "tone.json")
  }

  @Test("after a termination signal, a run does not wait for a reader that has stopped reading its trace")
  func stuckPipe() throws {
    try #require(mkfifo(scratch.file("out"), 0o600) == 0)
    // A reader that reads nothing from a full pipe: the trace blocks at its first byte.
    let reader = open(scratch.file("out"), O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    let page = [UInt8](repeating: 10, count: 4_096)
    while write(reader, page, page.count) > 0 {}
    let process = try RunnerProcess(
      ["run", "-q", tone(duration: 86_400_000), "--trace", "out"], in: scratch,
      shell: #"XDG_RUNTIME_DIR=$PWD exec "$@""#)
    // The socket for `top` exists before the trace begins, and signals are handled even earlier.
    try process.wait {
      (try? FileManager.default.contentsOfDirectory(atPath: scratch.file("millrace")).isEmpty) == false
    }
    process.send(SIGTERM)
    let result = process.wait()
    #expect(result.status == 2)
    #expect(
      result.errors
        == "error: cannot write the trace: the reader of the pipe has stopped reading; free some space or choose another path\n"
    )
  }

  @Test("saved benchmark results survive an interrupted measurement")
  func keptFigures() throws {
    let old = Array("earlier".utf8)
    let kept = try scratch.write(old, to: "kept.jsonl")
    let process = try RunnerProcess(
      ["bench", "soak", "--save", kept], in: scratch, shell: #"exec "$@" > lines"#)
    // The first line is printed after the file has been checked, and minutes before the first result.
    try process.wait { (try? scratch.bytes("lines").isEmpty) == false }
    process.send(SIGINT)
    #expect(process.wait().status == 128 + SIGINT)
    #expect(try scratch.bytes("kept.jsonl") == old)
  }

  @Test("a file size limit is reported and does not kill the program")
  func sizeLimit() throws {
    let path = try graph()
    let result = try RunnerProcess(["run", "-q", path], in: scratch, shell: #"ulimit -f 8; exec "$@""#).wait()
    #expect(result.status == 3)
    #expect(result.errors.contains("File too large (errno 27)"), "\(result.errors)")
  }

  @Test("a failed check keeps its status when its output cannot be written")
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
