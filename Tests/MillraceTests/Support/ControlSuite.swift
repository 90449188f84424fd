import Foundation
import Glibc
import Millrace
import Testing

/// Helpers for suites about `millrace run --control`.
protocol ControlSuite {
  var scratch: Scratch { get }
}

extension ControlSuite {
  /// Writes a graph with a tone, a gain and a file, which runs for one second or without end.
  func graph(endless: Bool = false, name: String = "live") throws -> String {
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

  /// Parses answers, one per line.
  func answers(_ text: String) throws -> [JSONObject] {
    try text.split(separator: "\n").filter { $0.hasPrefix("{") }.map { line in
      let document = try JSONDocument.scan(SourceFile(name: "answers", text: String(line)))
      return try #require(document.root.object)
    }
  }

  func commands(_ lines: [String], to name: String = "commands.jsonl") throws -> String {
    try scratch.write(lines.joined(separator: "\n").utf8, to: name)
  }

  /// Writes to a named pipe as a shell does: opens, writes and closes it.
  func send(_ text: String, to pipe: String) throws {
    let descriptor = open(pipe, O_WRONLY | O_NONBLOCK)
    try #require(descriptor >= 0, "the pipe has no reader")
    defer { close(descriptor) }
    #expect(write(descriptor, text, text.utf8.count) == text.utf8.count)
  }

  func makePipe(_ name: String) throws -> String {
    try #require(mkfifo(scratch.file(name), 0o600) == 0)
    return scratch.file(name)
  }
}
