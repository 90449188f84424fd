import Foundation
import MillraceTesting
import TestMedia
import Testing

/// What a user sees when a file is not what it should be: `millrace` as a program of its own.
@Suite("Bad files, as the user of the program meets them", .timeLimit(.minutes(30)))
struct BadInputTests {
  private let scratch = Scratch()

  /// A second of sound, and the same as Ogg Opus.
  private func sound() throws -> String {
    try scratch.write(Sound.made(rate: 48_000, frames: 48_000).wav, to: "sound.wav")
  }
  private func opus() throws -> String {
    let values = ["input": try sound(), "output": scratch.file("sound.opus"), "pace": "false"]
    try runGraph(Package.graph("voice-uplink"), values)
    return scratch.file("sound.opus")
  }

  private func run(_ graph: String, _ values: [String: String], quiet: Bool = true, shell: String? = nil)
    throws
    -> RunnerProcess.Result
  {
    var arguments = ["run", Package.graph(graph)] + (quiet ? ["-q"] : [])
    if graph == "voice-uplink" && values["pace"] == nil { arguments += ["--set", "pace=false"] }
    for (name, value) in values { arguments += ["--set", "\(name)=\(value)"] }
    return try RunnerProcess(arguments, in: scratch, shell: shell).wait()
  }

  /// One line that begins at a line and column of the graph and has the file and the words in it.
  private func expect(
    _ result: RunnerProcess.Result, status: Int32, graph: String, _ texts: String...,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(result.status == status, "\(result.errors)", sourceLocation: sourceLocation)
    #expect(result.problems.count == 1, "\(result.errors)", sourceLocation: sourceLocation)
    let line = result.problems.first ?? ""
    #expect(
      line.range(of: "/\(graph)\\.json:[0-9]+:[0-9]+: error: ", options: .regularExpression) != nil,
      "\(line)",
      sourceLocation: sourceLocation)
    for text in texts { #expect(line.contains(text), "\(line)", sourceLocation: sourceLocation) }
    // Behind the last semicolon stands the cure.
    #expect(line.contains("; "), "no cure: \(line)", sourceLocation: sourceLocation)
    #expect(result.output.isEmpty, sourceLocation: sourceLocation)
  }

  // MARK: Inputs

  @Test(
    "an input that is missing, a directory, empty or no sound is refused at its place",
    arguments: ["voice-uplink", "voice-return"])
  func inputs(graph: String) throws {
    let random = (0..<20_000).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 11) }
    let files = [
      ("missing.wav", "there is no"), (scratch.path, "is a directory"),
      (try scratch.write([], to: "empty.wav"), "is empty"),
      (try scratch.write(random, to: "random.wav"), "random.wav"),
      (try scratch.write("RIFF".utf8, to: "four.wav"), "four.wav"),
    ]
    for (path, words) in files {
      let result = try run(graph, ["input": path, "output": scratch.file("out")])
      expect(
        result, status: 1, graph: graph, "\"\(path)\"",
        words)
      #expect(!FileManager.default.fileExists(atPath: scratch.file("out")), "nothing was started")
    }
  }

  @Test("a truncated file is read as far as it goes, and the user is notified")
  func truncatedWAV() throws {
    let whole = Sound.made(rate: 48_000, frames: 48_000)
    let path = try scratch.write(whole.wav.prefix(44 + 2 * 20_000), to: "cut.wav")
    let result = try run(
      "rates", ["input": path, "folder": scratch.path], quiet: false)
    #expect(result.status == 0)
    #expect(result.errors.contains("node \"in\": truncated: samples 20000, expected 48000"))
    #expect(try Sound(path: scratch.file("48000.wav")).samples == Array(whole.samples.prefix(20_000)))
  }

  @Test(
    "a truncated FLAC or MP3 is read as far as it goes, and the user is notified",
    arguments: ["voice.flac", "voice.mp3"]
      + (Corpus.has("audio/tts") ? ["audio/tts/LJ001-0001.flac", "audio/tts/LJ001-0001.mp3"] : []))
  func truncatedCoded(name: String) throws {
    let path = name.hasPrefix("voice") ? scratch.file(name) : try #require(Corpus.path(name))
    if name.hasPrefix("voice") {
      MediaFile.write(
        Fixture.voice16(rate: 22_050, frames: 6 * 22_050),
        codec: name.hasSuffix("mp3") ? "libmp3lame" : "flac",
        rate: 22_050, to: path)
    }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    let cut = try scratch.write(bytes.prefix(bytes.count / 2), to: "cut." + name.suffix(4))
    let result = try run("voice-uplink", ["input": cut, "output": scratch.file("out.opus")], quiet: false)
    #expect(result.status == 0)
    #expect(result.errors.contains("node \"mic\": truncated: samples "), "\(result.errors)")
    try expectPlays(scratch.file("out.opus"), atLeast: 2.0)
  }

  @Test("an Ogg file cut anywhere gives what it has")
  func truncatedOgg() throws {
    let bytes = try scratch.bytes(URL(fileURLWithPath: opus()).lastPathComponent)
    for part in [bytes.count * 3 / 4, bytes.count - 1] {
      let path = try scratch.write(bytes.prefix(part), to: "cut.opus")
      let result = try run("voice-return", ["input": path, "output": scratch.file("out.wav")], quiet: false)
      #expect(result.status == 0)
      #expect(result.errors.contains("node \"in\": truncated: position "), "\(result.errors)")
      #expect(FileManager.default.fileExists(atPath: scratch.file("out.wav")))
    }
    let headless = try scratch.write(bytes.prefix(60), to: "cut.opus")
    expect(
      try run("voice-return", ["input": headless, "output": scratch.file("out.wav")]), status: 1,
      graph: "voice-return", "\"\(headless)\"")
  }

  // MARK: Outputs

  @Test("an output in a missing directory, or onto a directory, is refused at its place")
  func outputs() throws {
    let (sound, opus) = (try sound(), try opus())
    let missing = scratch.file("none/out")
    for (path, words) in [(missing, "none"), (scratch.path, "directory")] {
      for (graph, values) in [
        ("voice-uplink", ["input": sound, "output": path]),
        ("voice-return", ["input": opus, "output": path]),
        ("mix", ["input": sound, "output": scratch.file("mix.wav"), "log": path]),
      ] {
        let result = try run(graph, values)
        expect(result, status: 1, graph: graph, "\"\(path)\"", words)
      }
    }
  }

  @Test("a full disk ends with the file's name, never in silence")
  func fullDisk() throws {
    let (sound, opus) = (try sound(), try opus())
    for (graph, status, values) in [
      ("voice-uplink", Int32(3), ["input": sound, "output": "/dev/full"]),
      ("voice-return", 1, ["input": opus, "output": "/dev/full"]),
      ("mix", 3, ["input": sound, "output": scratch.file("mix.wav"), "log": "/dev/full"]),
    ] {
      let result = try run(graph, values)
      expect(result, status: status, graph: graph, "\"/dev/full\"", "free disk space")
    }
  }

  @Test("a disk that fills up on the way leaves a file that can be read")
  func diskFillsUp() throws {
    let long = try scratch.write(Sound.made(rate: 48_000, frames: 480_000).wav, to: "long.wav")
    // A limit of 512 KiB a file stands for the disk; the signal that comes with it is ignored.
    let result = try run(
      "rates", ["input": long, "folder": scratch.path], shell: "trap '' XFSZ; ulimit -f 512; exec \"$@\"")
    expect(result, status: 3, graph: "rates", ".wav\" failed: ", "ms before it are readable")
    let kept = try Sound(path: scratch.file("48000.wav"))
    #expect(kept.rate == 48_000 && kept.frames > 100_000)
  }

  @Test("when the reader of standard output goes, the run ends by itself with 3 and one line")
  func closedPipe() throws {
    let result = try run(
      "mix", ["input": sound(), "output": scratch.file("mix.wav"), "log": "-"],
      shell: "set -o pipefail; \"$@\" | true")
    #expect(result.status == 3)
    #expect(result.problems.count == 1, "\(result.errors)")
    #expect(result.errors.contains("writing standard output failed: "))
  }

  /// A graph that writes 100 ms to `tone.wav`.
  private func toneGraph() throws -> String {
    let graph = """
      { "millrace": 1, "name": "tone",
        "nodes": { "tone": { "type": "audio.tone", "duration": 100, "pace": false },
                   "wav": { "type": "audio.write", "path": "tone.wav" } },
        "links": [ "tone -> wav" ] }
      """
    return try scratch.write(graph.utf8, to: "tone.json")
  }

  @Test("started without standard output and error, nothing it tells gets into a file it writes")
  func closedDescriptors() throws {
    let path = try toneGraph()
    for ending in [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"] {
      let result = try RunnerProcess.run(
        "run", path, "--trace", "trace.json", in: scratch, shell: "\"$@\" \(ending)")
      #expect(result.status == 0)
      let trace = try Data(scratch.bytes("trace.json"))
      #expect((try? JSONSerialization.jsonObject(with: trace)) is [Any], "with \(ending)")
      #expect(try Sound(path: scratch.file("tone.wav")).frames == 4_800)
    }
  }

  @Test("a trace written to - goes to standard output")
  func traceOnOutput() throws {
    let path = try toneGraph()
    let result = try RunnerProcess.run("run", "-q", path, "--trace", "-", in: scratch)
    #expect(result.status == 0)
    #expect((try? JSONSerialization.jsonObject(with: Data(result.output.utf8))) is [Any], "\(result.output)")
    #expect(!FileManager.default.fileExists(atPath: scratch.file("-")))
  }

  // MARK: Calls

  @Test("a graph that fails the check ends with 1, a wrong call with 2")
  func statuses() throws {
    let graph = #"{ "millrace": 1, "name": "w", "nodes": { "a": { "type": "audio.tome" } }, "links": [] }"#
    let path = try scratch.write(graph.utf8, to: "wrong.json")
    let wrong = try RunnerProcess.run("run", path, in: scratch)
    #expect(wrong.status == 1)
    #expect(wrong.problems.first?.contains("wrong.json:1:") == true && wrong.errors.contains("audio.tone"))
    #expect(try RunnerProcess.run("check", path, in: scratch).status == 1)
    for call in [["run"], ["runs"], ["run", "--nonsense", path], ["nodes", "audio.tome"]] {
      let result = try RunnerProcess(call, in: scratch).wait()
      #expect(result.status == 2, "\(call)")
      #expect(!result.errors.isEmpty && result.output.isEmpty)
    }
    let unknown = try run("mix", ["nope": "1"])
    #expect(unknown.status == 1 && unknown.problems.count == 1 && unknown.errors.contains("\"nope\""))
  }

  private func expectPlays(_ opus: String, atLeast seconds: Double) throws {
    try runGraph(Package.graph("voice-return"), ["input": opus, "output": scratch.file("played.wav")])
    #expect(Double(try Sound(path: scratch.file("played.wav")).frames) / 48_000 >= seconds)
  }
}
