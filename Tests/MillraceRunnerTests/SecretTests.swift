import Foundation
import Glibc
import MillraceRunner
import Testing

/// Values from the environment appear nowhere, even when a node leaks them.
@Suite("Secrets in the runner's output", .timeLimit(.minutes(30)))
struct SecretTests {
  /// Contains characters that JSON and some programs escape.
  private static let token = #"sés"ame-4711"#
  private static let escaped = [token, #"sés\"ame-4711"#, #"s\u00e9s\"ame-4711"#, "ame-4711"]
  private static let pin = "471147"

  @Test("a node's secrets are in no event, log, text, tap, golden run, report, trace, notice or failure")
  func everyWayOut() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      makeRunnerFolder()
      setenv("MILLRACE_TEST_TOKEN", Self.token, 1)
      setenv("MILLRACE_TEST_PIN", Self.pin, 1)
      let commands = [("loose -> say", "said.jsonl"), ("loose.events -> log.in1", "heard.jsonl")].map {
        #"{ "command": "tap", "link": "\#($0)", "file": "\#($1)" }"#
      }
      try Data(commands.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: "commands"))
      for arguments in [
        ["--report", "report.html", "--trace", "trace.json", "--control", "commands"],
        ["--report", "report.json"], ["--record-golden", "golden"], ["--compare", "golden"],
      ] {
        let status = MillraceCommand.run(
          catalogue: .runnerProgramTests, name: "counter", arguments: ["run", "loose.json"] + arguments)
        guard status == .failed else { exit(1) }
      }
      for arguments in [["explain"], ["draw"], ["check"]] {
        _ = MillraceCommand.run(
          catalogue: .runnerProgramTests, name: "counter", arguments: arguments + ["loose.json"])
      }
      for file in Self.places { printFile(file) }
    }
    let (printed, remarks) = (output(of: result), errors(of: result))
    for secret in Self.escaped + [Self.pin] {
      #expect(!printed.contains(secret))
      #expect(!remarks.contains(secret))
    }
    // The texts themselves are everywhere, with the secrets removed.
    let lines = printed.split(separator: "\n").map(String.init)
    #expect(lines.count { $0 == "•••, •••, •••" } == 4, "text.print")
    #expect(
      lines.count { $0.hasSuffix(#""event":"truncated","said":"•••","bare":"•••","pin":"•••"}"#) } == 3,
      "event.log, its tap, the golden events")
    #expect(lines.contains { $0.hasSuffix(#""text":"•••, •••, •••"}"#) }, "the tap of the text")
    #expect(remarks.contains(#"node "loose": truncated: said •••, bare •••, pin •••"#))
    #expect(remarks.contains(#"node "loose" failed: ••• does not fit •••"#))
    #expect(remarks.contains("golden: loose: loose.path: line 1 is 4: •••, golden 3: •••"))
  }

  @Test(
    "secrets that a running graph receives are removed from then on: in a live parameter, and by name in a message"
  )
  func given() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      makeRunnerFolder()
      let commands = [
        #"{ "command": "send", "node": "echo", "text": { "command": "refreshAuth", "token": "sk-MARKER-4711" }, "at": "100ms" }"#,
        #"{ "command": "set", "node": "echo", "parameter": "key", "value": "key-MARKER-4712", "at": "200ms" }"#,
        #"{ "command": "send", "node": "echo", "text": "key-MARKER-4712 or sk-MARKER-4711", "at": "300ms" }"#,
        #"{ "command": "set", "node": "echo", "parameter": "key", "value": ["key-MARKER-4713"], "at": "400ms" }"#,
        #"{ "command": "set", "node": "echo", "parameter": "key", "value": sk-MARKER-4714 }"#,
        #"{ "command": "get", "node": "echo", "parameter": "key", "at": "500ms" }"#,
      ]
      try Data(commands.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: "commands"))
      let status = MillraceCommand.run(
        catalogue: .runnerProgramTests, name: "counter",
        arguments: ["run", "echo.json", "--control", "commands", "--report", "report.json"])
      printFile("report.json")
      exit(status == .done ? 0 : 1)
    }
    let printed = output(of: result) + errors(of: result)
    #expect(!printed.contains("MARKER"), "\(printed)")
    #expect(printed.contains(#"{"command":"refreshAuth","token":"•••"}"#), "\(printed)")
    #expect(printed.contains("now it is •••\n") && printed.contains("••• or •••\n"), "\(printed)")
    #expect(printed.contains(#""value":"•••"}"#), "\(printed)")
    #expect(
      printed.contains(#"\"key\" of \"echo\" cannot be the given value; it takes a string"#), "\(printed)")
  }

  @Test("what a node learns while it runs is in no event, log, tap, golden run, report, trace or failure")
  func learnt() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      makeRunnerFolder()
      let commands = [("late -> say", "said.jsonl"), ("late.events -> log.in1", "heard.jsonl")].map {
        #"{ "command": "tap", "link": "\#($0)", "file": "\#($1)" }"#
      }
      try Data(commands.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: "commands"))
      for arguments in [
        ["--report", "report.html", "--trace", "trace.json", "--control", "commands"],
        ["--report", "report.json"], ["--record-golden", "golden"], ["--compare", "golden"],
      ] {
        let status = MillraceCommand.run(
          catalogue: .runnerProgramTests, name: "counter", arguments: ["run", "learns.json"] + arguments)
        guard status == .failed else { exit(1) }
      }
      for file in Self.places { printFile(file.replacing("loose", with: "late")) }
    }
    let (printed, remarks) = (output(of: result), errors(of: result))
    for part in ["room-4711", "open-sesame"] {
      #expect(!printed.contains(part))
      #expect(!remarks.contains(part))
    }
    // The texts themselves are everywhere, with the secrets removed.
    let lines = printed.split(separator: "\n").map(String.init)
    let shown = "rtmp://live.example.org/app/•••"
    #expect(lines.count { $0 == shown } == 4, "text.print")
    #expect(
      lines.count { $0.hasSuffix(#""event":"truncated","said":"\#(shown)"}"#) } >= 2, "event.log, its tap")
    #expect(lines.contains { $0.hasSuffix(#""text":"\#(shown)"}"#) }, "the tap of the text")
    #expect(remarks.contains(#"node "late" failed: \#(shown) is gone"#), "\(remarks)")
    #expect(remarks.contains("golden: late: late.path: line 1 is 4: \(shown), golden 3: \(shown)"))
  }

  private static let places = [
    "events.jsonl", "said.jsonl", "heard.jsonl", "report.html", "report.json", "trace.json",
    "golden/golden.json", "golden/files/1-loose/events.jsonl",
  ]
}
