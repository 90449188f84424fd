import Foundation
import Glibc
import Millrace
import TestSystem
import Testing

/// `millrace run --record-golden` and `--compare`: regression tests of whole graphs.
@Suite("Golden runs", .timeLimit(.minutes(30)))
struct GoldenTests {
  private let scratch = Scratch()

  /// Noise through a gain and a meter into files; two channels from 16 kHz.
  private func graph(_ extra: String = "", _ links: String = "") throws -> String {
    let text = """
      { "millrace": 1, "name": "noisy",
        "parameters": { "gain": { "default": 0 }, "length": { "default": 1000 }, "level": { "default": -20 } },
        "nodes": {
          "noise": { "type": "audio.tone", "kind": "noise", "rate": 16000, "channels": 2, "duration": "${length}", "level": "${level}" },
          "gain": { "type": "audio.gain", "gain": "${gain}", "ramp": 0 },
          "meter": { "type": "audio.level", "window": 200 },
          "log": { "type": "event.log", "path": "log.jsonl" },
          "out": { "type": "audio.write", "path": "out.wav" }\(extra)
        },
        "links": [ "noise -> gain -> meter -> out", "meter.events -> log.in1"\(links) ] }
      """
    return try scratch.write(text.utf8, to: "golden.json")
  }

  private func run(_ arguments: String...) throws -> RunnerProcess.Result {
    try RunnerProcess(["run"] + arguments, in: scratch).wait()
  }

  /// The messages about the golden run, without the prefix and without the graph's own summary.
  private func messages(_ result: RunnerProcess.Result) -> [String] {
    result.errors.split(separator: "\n").filter { $0.hasPrefix("golden: ") }.map { String($0.dropFirst(8)) }
      .filter { !$0.hasPrefix("done after ") }
  }

  /// The message about one item.
  private func message(_ result: RunnerProcess.Result, of what: String) -> String {
    messages(result).first { $0.hasPrefix("noisy: \(what)") } ?? "none: \(result.errors)"
  }

  private func commands(_ lines: String...) throws -> String {
    try scratch.write(lines.joined(separator: "\n").utf8, to: "commands.jsonl")
  }

  private let differs =
    #"the run differs from "kept"; if this is intended, record it again with --record-golden"#

  // MARK: Equal runs

  @Test("a run matches its golden run with any number of workers, and recording twice gives the same record")
  func same() throws {
    let path = try graph()
    let recorded = try run(path, "--record-golden", "kept")
    #expect(recorded.status == 0)
    #expect(messages(recorded) == [#"recorded 2 files, 8 events, 4 links in "kept""#])
    let record = try scratch.bytes("kept/golden.json")
    for workers in ["1", "2"] {
      let compared = try run(path, "--compare", "kept", "--workers", workers)
      #expect(compared.status == 0)
      #expect(messages(compared) == [#"the run matches "kept": 2 files, 8 events, 4 links"#])
    }
    #expect(try run("-q", path, "--compare", "kept").errors.isEmpty)
    #expect(try run("-q", path, "--record-golden", "kept").status == 0)
    #expect(try scratch.bytes("kept/golden.json") == record)
  }

  @Test("the record has the hashes of sha256sum, and no path of this machine")
  func record() throws {
    _ = try run("-q", try graph(), "--record-golden", "kept", "--set", "length=777")
    let record = String(decoding: try scratch.bytes("kept/golden.json"), as: UTF8.self)
    #expect(!record.contains(scratch.path))
    let document = try JSONDocument.scan(SourceFile(name: "golden.json", text: record))
    let files = try #require(document.root["runs"]?.array?.first?["files"]?.array)
    #expect(files.compactMap { $0["node"]?.string }.sorted() == ["log", "out"])
    for file in files {
      let name = try #require(file["file"]?.string)
      let sum = try TestProgram(
        "/usr/bin/sha256sum", [scratch.file("kept/" + name)], output: .file(scratch.file("sum")))
      #expect(sum.wait() == 0)
      let output = String(decoding: try scratch.bytes("sum"), as: UTF8.self)
      #expect(file["sha256"]?.string == String(output.prefix(64)))
      #expect(try scratch.bytes("kept/" + name).count == Int(file["bytes"]?.integer ?? -1))
    }
  }

  @Test("instances and several graphs are recorded and compared")
  func several() throws {
    let one = try scratch.write(
      #"{ "millrace": 1, "name": "one", "parameters": { "output": { "default": "x" } }, "nodes": { "t": { "type": "audio.tone", "rate": 8000, "duration": 100 }, "w": { "type": "audio.write", "path": "${output}" } }, "links": [ "t -> w" ] }"#
        .utf8, to: "one.json")
    let arguments = ["run", one, "--instances", "3", "--set", "output=of-{instance}.wav"]
    #expect(try RunnerProcess(arguments + ["--record-golden", "kept"], in: scratch).wait().status == 0)
    let compared = try RunnerProcess(arguments + ["--compare", "kept"], in: scratch).wait()
    #expect(compared.status == 0)
    #expect(
      messages(compared) == [#"the run matches "kept": 3 files, 9 events, 3 links"#]
    )
    let fewer = try RunnerProcess(
      ["run", "-q", one, "--set", "output=x.wav", "--compare", "kept"], in: scratch
    ).wait()
    #expect(fewer.status == 5)
    #expect(messages(fewer).first == ##"the runs are "one", golden "one #1", "one #2", "one #3""##)
  }

  // MARK: Differences

  @Test(
    "sound that differs is reported with its first sample, its time, both values and the size of the difference"
  )
  func sound() throws {
    let path = try graph()
    _ = try run("-q", path, "--record-golden", "kept")
    let file = try commands(
      #"{ "command": "set", "node": "gain", "parameter": "mute", "value": true, "at": "500ms" }"#,
      #"{ "command": "set", "node": "gain", "parameter": "mute", "value": false, "at": "520ms" }"#)
    let result = try run("-q", path, "--compare", "kept", "--control", file)
    #expect(result.status == 5)
    let first = message(result, of: "out.path")
    // 20 ms of silence from 500 ms on, in both channels.
    #expect(first.hasPrefix("noisy: out.path: sample 8000 of channel 1 at 500 ms is 0, golden "))
    #expect(first.contains("; 640 of 32000 samples differ, by at most 0."))
    #expect(first.hasSuffix(" dB"))
    #expect(messages(result).last == differs)
  }

  @Test("a different length or format of sound is reported")
  func format() throws {
    let path = try graph()
    _ = try run("-q", path, "--record-golden", "kept")
    let shorter = try run("-q", path, "--compare", "kept", "--set", "length=990")
    #expect(shorter.status == 5)
    #expect(
      message(shorter, of: "out.path")
        == "noisy: out.path: 15840 samples, golden 16000; the samples present in both are equal")
    let text = try String(contentsOfFile: path, encoding: .utf8)
    _ = try scratch.write(
      text.replacing("\"rate\": 16000, \"channels\": 2", with: "\"rate\": 8000, \"channels\": 1").utf8,
      to: "golden.json")
    let other = try run("-q", path, "--compare", "kept")
    #expect(message(other, of: "out.path") == "noisy: out.path: format 8000 Hz 1 ch, golden 16000 Hz 2 ch")
    #expect(
      messages(other).contains {
        $0.hasPrefix("noisy: link \"noise -> gain\": carries s16 8000 Hz 1 ch, golden s16 16000 Hz 2 ch")
      })
  }

  @Test("differences in events, lines of files, counts and times are reported with their first position")
  func events() throws {
    let path = try graph()
    _ = try run("-q", path, "--record-golden", "kept")
    let result = try run("-q", path, "--compare", "kept", "--set", "length=990", "--set", "gain=-1")
    let lines = messages(result)
    #expect(
      lines.contains {
        $0.hasPrefix("noisy: log.path: line 1 is {\"time\":0.180000,")
          && $0.contains(", golden {\"time\":0.180000,")
      })
    #expect(
      lines.contains {
        $0.hasPrefix("noisy: event 2 is {\"time\":0.180000,\"node\":\"meter\",\"event\":\"level\"")
      })
    #expect(result.status == 5)
    let drained = try run("-q", path, "--compare", "kept", "--duration", "800ms")
    #expect(messages(drained).contains("noisy: duration 800 ms, golden 980 ms"))
    #expect(messages(drained).contains(#"noisy: node "noise": packets out 40, golden 50"#))
    #expect(
      messages(drained).contains(#"noisy: link "noise -> gain": pushed 40, golden 50; popped 40, golden 50"#))
  }

  @Test("a missing or new file is reported")
  func files() throws {
    let more = #", "copy": { "type": "audio.write", "path": "copy.wav" }"#
    let path = try graph(more, #", "gain -> copy""#)
    _ = try run("-q", path, "--record-golden", "kept")
    let fewer = try run("-q", try graph(), "--compare", "kept")
    #expect(fewer.status == 5)
    #expect(messages(fewer).contains("noisy: copy.path: no file was written, golden 62.6 KiB"))
    #expect(
      messages(fewer).contains(#"noisy: node "copy" is missing"#)
        && messages(fewer).contains(#"noisy: link "gain -> copy" is missing"#))
    _ = try run("-q", try graph(), "--record-golden", "kept")
    let added = try run("-q", try graph(more, #", "gain -> copy""#), "--compare", "kept")
    #expect(messages(added).contains("noisy: copy.path: 62.6 KiB written, golden no file"))
    #expect(messages(added).contains(#"noisy: node "copy" is new"#))
  }

  @Test("Opus in Ogg is compared as decoded sound")
  func opus() throws {
    let graph =
      #"{ "millrace": 1, "name": "voice", "parameters": { "bitrate": { "default": 24000 } }, "nodes": { "t": { "type": "audio.tone", "rate": 16000, "duration": 500, "kind": "sweep", "to": 4000 }, "e": { "type": "opus.encode", "bitrate": "${bitrate}" }, "w": { "type": "ogg.write", "path": "out.opus" } }, "links": [ "t -> e -> w" ] }"#
    let path = try scratch.write(graph.utf8, to: "voice.json")
    #expect(try run("-q", path, "--record-golden", "kept").status == 0)
    #expect(try run("-q", path, "--compare", "kept").status == 0)
    let other = try run("-q", path, "--compare", "kept", "--set", "bitrate=12000")
    #expect(other.status == 5)
    #expect(
      messages(other).first?.contains("w.path: sample ") == true
        && messages(other).first?.contains(" signal-to-noise ratio ") == true, "\(other.errors)")
  }

  @Test("differences within the tolerance pass, and larger ones do not")
  func tolerance() throws {
    let path = try graph()
    _ = try run("-q", path, "--record-golden", "kept")
    // A gain of 0.01 dB: a difference 59 dB below the sound, and rounding.
    func compare(_ options: String...) throws -> RunnerProcess.Result {
      try RunnerProcess(["run", path, "--compare", "kept", "--set", "gain=0.01"] + options, in: scratch)
        .wait()
    }
    #expect(try compare().status == 5)
    let near = try compare("--min-snr", "50", "--number-tolerance", "0.02")
    #expect(near.status == 0)
    #expect(
      messages(near) == [
        #"the run matches "kept": 2 files, 8 events, 4 links (2 files within the tolerance)"#
      ])
    #expect(try compare("--max-difference", "0.001", "--number-tolerance", "0.02").status == 0)
    #expect(try compare("--min-snr", "70", "--number-tolerance", "0.02").status == 5)
    #expect(try compare("--max-difference", "0.00002", "--number-tolerance", "0.02").status == 5)
    #expect(
      try compare("--min-snr", "50", "--max-difference", "0.00002", "--number-tolerance", "0.02").status == 5)
    #expect(try compare("--min-snr", "50").status == 5, "the numbers of the events have no tolerance")
  }

  @Test("a run whose node fails keeps status 3, and the failure is part of the golden run")
  func failure() throws {
    let path = try graph(#", "full": { "type": "audio.write", "path": "/dev/full" }"#, #", "gain -> full""#)
    #expect(try run("-q", path, "--record-golden", "kept").status == 1, "a node that cannot be created")
    let log = try scratch.write(
      #"{ "millrace": 1, "name": "fails", "nodes": { "t": { "type": "audio.tone", "rate": 16000, "duration": 500 }, "m": { "type": "audio.level" }, "n": { "type": "flow.null" }, "l": { "type": "event.log", "path": "/dev/full" } }, "links": [ "t -> m -> n", "m.events -> l.in1" ] }"#
        .utf8, to: "fails.json")
    #expect(try run("-q", log, "--record-golden", "kept").status == 3)
    let again = try run("-q", log, "--compare", "kept")
    #expect(again.status == 3 && messages(again).isEmpty, "\(again.errors)")
    let text = try String(contentsOfFile: log, encoding: .utf8)
    _ = try scratch.write(text.replacing("/dev/full", with: "fine.jsonl").utf8, to: "fails.json")
    let repaired = try run("-q", log, "--compare", "kept")
    #expect(repaired.status == 5)
    #expect(messages(repaired).first == #"fails: no node failed, golden: node "l" failed"#)
  }

  // MARK: Errors

  @Test(
    "a graph that cannot follow the virtual clock is rejected with the name of the node, and nothing is created"
  )
  func programs() throws {
    let result = try run("-q", Package.graph("through-a-program"), "--record-golden", "kept")
    #expect(result.status == 1)
    #expect(
      result.errors.contains(#"node "program" (process.pipe) cannot follow a virtual clock"#),
      "\(result.errors)")
    #expect(!FileManager.default.fileExists(atPath: scratch.file("kept")))
  }

  @Test("a silent golden sound and a missing copy are reported")
  func silentOrMissing() throws {
    let path = try graph()
    _ = try run("-q", path, "--record-golden", "kept", "--set", "gain=-120", "--set", "level=-120")
    let louder = try run("-q", path, "--compare", "kept")
    #expect(message(louder, of: "out.path").hasSuffix(", the golden sound is silent"), "\(louder.errors)")
    try FileManager.default.removeItem(atPath: scratch.file("kept/files/1-noisy/out.path.wav"))
    let missing = try run("-q", path, "--compare", "kept")
    #expect(
      message(missing, of: "out.path").hasPrefix(
        #"noisy: out.path: the bytes differ; they cannot be compared: cannot open "kept/files/1-noisy/out.path.wav""#
      ))
  }

  @Test("the directory of a golden run is created, with its parents")
  func deepFolder() throws {
    let path = try graph()
    for folder in ["golden/deep/noisy", scratch.file("whole/path/noisy/")] {
      let recorded = try run("-q", path, "--record-golden", folder)
      #expect(recorded.status == 0, "\(recorded.errors)")
      #expect(try run("-q", path, "--compare", folder).status == 0)
    }
  }

  @Test("usage errors and invalid golden runs exit with 2")
  func wrongCalls() throws {
    let path = try graph()
    try #require(mkfifo(scratch.file("pipe"), 0o600) == 0)
    let calls: [([String], String)] = [
      (["--record-golden", "a", "--compare", "b"], "--record-golden cannot be combined with --compare"),
      (["--record-golden", ""], "need the name of a directory"),
      (["--compare", ""], "need the name of a directory"),
      (["--compare", "none"], "there is no golden run in \"none\"; check the path, or record one with"),
      (["--record-golden", "a", "--clock", "realtime"], "golden runs need the virtual clock"),
      (["--min-snr", "20"], "need --compare"),
      (["--compare", "b", "--max-difference=-1"], "a tolerance must be a number of at least 0"),
      (["--compare", "b", "--min-snr", "nan"], "--min-snr must be a number of dB"),
      (["--record-golden", "golden.json/x"], "cannot create directory"),
      (["--record-golden", "a", "--control", "pipe"], "golden runs read commands before they start"),
    ]
    for (arguments, text) in calls {
      let result = try RunnerProcess(["run", "-q", path] + arguments, in: scratch).wait()
      #expect(result.status == 2, "\(arguments): \(result.errors)")
      #expect(result.errors.contains(text), "\(arguments): \(result.errors)")
    }
    _ = try run("-q", path, "--record-golden", "kept")
    let good = String(decoding: try scratch.bytes("kept/golden.json"), as: UTF8.self)
    for (bad, text) in [
      ("{", "golden.json:1:"),
      (good.replacing("\"millraceGolden\": 1", with: "\"millraceGolden\": 9"), "version 9"),
      (good.replacing("\"pushed\": 50", with: "\"pushed\": \"x\""), "\"pushed\" must be an integer"),
      (good.replacing("\"node\": \"log\"", with: "\"node\": 1"), "\"node\" must be a string, found a number"),
      (
        good.replacing("\"restarts\": 0", with: "\"again\": 0"),
        "missing member \"restarts\"; record the golden run again with --record-golden"
      ),
    ] {
      _ = try scratch.write(bad.utf8, to: "kept/golden.json")
      let result = try run("-q", path, "--compare", "kept")
      #expect(result.status == 2 && result.errors.contains(text), "\(result.errors)")
    }
  }

  @Test("an interrupted run is not recorded or compared")
  func interrupted() throws {
    let path = try graph()
    let process = try RunnerProcess(
      ["run", "-q", path, "--record-golden", "kept", "--set", "length=86000000"], in: scratch)
    try process.wait { (try? scratch.bytes("out.wav").count) ?? 0 >= 100_000 }
    process.send(SIGINT)
    let result = process.wait()
    #expect(result.status == 130)
    #expect(messages(result) == ["the run was interrupted, so it is not recorded or compared"])
    #expect(!FileManager.default.fileExists(atPath: scratch.file("kept/golden.json")))
  }
}
