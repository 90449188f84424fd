import Foundation
import Glibc
import MillraceGraph
import MillraceTesting
import Testing

/// A graph that runs in one process, observed from another.
@Suite("millrace top", .timeLimit(.minutes(30)))
struct TopTests {
  private let scratch = Scratch()

  /// Starts the program with a separate directory for sockets.
  private func start(_ arguments: String...) throws -> RunnerProcess {
    try RunnerProcess(arguments, in: scratch, shell: "XDG_RUNTIME_DIR=$PWD exec \"$@\"")
  }

  /// Runs a query, again while the run is too busy to respond.
  private func ask(_ arguments: String...) throws -> RunnerProcess.Result {
    let end = ContinuousClock.now + .seconds(300)
    while true {
      let result = try RunnerProcess(
        arguments, in: scratch, shell: "XDG_RUNTIME_DIR=$PWD exec \"$@\""
      ).wait()
      if ContinuousClock.now > end || !result.errors.contains("does not respond") { return result }
    }
  }

  @Test("top shows the run, its nodes and rates; the socket is removed when the run has ended")
  func top() throws {
    let graph = """
      { "millrace": 1, "name": "live",
        "nodes": {
          "tone": { "type": "audio.tone", "duration": 3600000, "pace": true },
          "bin": { "type": "flow.null" } },
        "links": [ "tone -> bin" ] }
      """
    let run = try start("run", "-q", scratch.write(graph.utf8, to: "live.json"), "--name", "demo")
    try run.wait {
      (try? FileManager.default.contentsOfDirectory(atPath: scratch.file("millrace")).isEmpty) == false
    }
    let table = try ask("top", "--once")
    #expect(table.status == 0)
    let lines = table.output.split(separator: "\n").map(String.init)
    #expect(lines.first?.hasPrefix("demo  process ") == true)
    #expect(lines.contains { $0.hasPrefix("live  ") && $0.hasSuffix(", running") })
    #expect(lines.contains { $0.hasPrefix("  tone  audio.tone  ") })

    let json = try ask("top", "demo", "--json")
    let root = try JSONDocument.scan(SourceFile(name: "top", text: json.output)).root
    #expect(root["name"]?.string == "demo")
    #expect(root["graphs"]?.array?[0]["nodes"]?.array?[0]["type"]?.string == "audio.tone")

    let wrong = try start("top", "demmo", "--once").wait()
    #expect(wrong.status == 2)
    #expect(wrong.errors == "error: no run is named \"demmo\"; did you mean \"demo\"?\n")

    try expectFits(rows: 5)

    run.send(SIGSTOP)
    let silent = try start("top").wait()
    run.send(SIGCONT)
    #expect(silent.status == 2)
    let words =
      #/error: process (\d+) does not respond: it is suspended or overloaded; resume it \(kill -CONT (\d+)\), or try again\n/#
    #expect(try words.wholeMatch(in: silent.errors) != nil, "\(silent.errors)")

    run.send(SIGINT)
    #expect(run.wait().status == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.file("millrace")).isEmpty)
    let none = try start("top").wait()
    #expect(none.status == 2)
    #expect(none.errors == "error: no graph is running; start one with \"run\"\n")
  }

  /// In a small window nothing scrolls: one row stays free, and the last line has the number of hidden lines.
  private func expectFits(rows: Int) throws {
    let shell = """
      export XDG_RUNTIME_DIR=$PWD TERM=xterm; exec script -qec "stty rows \(rows) cols 200; $(printf '%q ' "$@")" /dev/null
      """
    let keys = Pipe()
    let window = try RunnerProcess(["top"], in: scratch, shell: shell, input: keys)
    func frames() -> [String] { window.outputSoFar.components(separatedBy: "\u{1B}[H") }
    try window.wait { frames().count > 3 }
    window.send(SIGKILL)
    _ = window.wait()
    try keys.fileHandleForWriting.close()
    let frame = try #require(frames().dropLast().last)
    #expect(frame.count { $0.isNewline } == rows - 1, "\(frame)")
    #expect(frame.contains("4 more lines; enlarge the window"), "\(frame)")
  }

  @Test("meters fit a window that is too small for all of them, and are redrawn in place")
  func lowWindow() throws {
    let meters = (1...6).map { "\"meter\($0)\"" }
    let nodes = meters.map { #"\#($0): { "type": "audio.level", "window": 100 }"# }.joined(separator: ", ")
    let chain = (1...6).map { "meter\($0)" }.joined(separator: " -> ")
    let graph = """
      { "millrace": 1, "name": "meters",
        "nodes": { "tone": { "type": "audio.tone", "duration": 3600000, "pace": true }, \(nodes), "bin": { "type": "flow.null" } },
        "links": [ "tone -> \(chain) -> bin" ] }
      """
    let keys = Pipe()
    let shell = """
      export XDG_RUNTIME_DIR=$PWD TERM=xterm; exec script -qec "stty rows 5 cols 80; $(printf '%q ' "$@")" /dev/null
      """
    let window = try RunnerProcess(
      ["run", scratch.write(graph.utf8, to: "meters.json")], in: scratch, shell: shell, input: keys)
    // Redrawing moves up by the number of drawn lines. Six meters and two other lines would be eight.
    try window.wait {
      window.outputSoFar.components(separatedBy: "more lines; enlarge the window").count > 3
    }
    window.send(SIGKILL)
    _ = window.wait()
    try keys.fileHandleForWriting.close()
    let ups = window.outputSoFar.matches(of: #/\x1B\[(\d+)A/#).compactMap { Int($0.output.1) }
    #expect(!ups.isEmpty && ups.allSatisfy { $0 <= 4 }, "\(ups)")
  }

  @Test("a socket directory that cannot be used is reported, and not treated as one without runs")
  func noFolder() throws {
    let nowhere = try RunnerProcess.run("top", in: scratch, shell: #"XDG_RUNTIME_DIR=/nowhere exec "$@""#)
    #expect(nowhere.status == 2)
    #expect(
      nowhere.errors
        == "error: cannot create directory /nowhere/millrace: No such file or directory (errno 2); set XDG_RUNTIME_DIR to the same value as for the runs\n"
    )
    let shared = try RunnerProcess.run(
      "top", in: scratch, shell: #"mkdir -m 755 millrace; XDG_RUNTIME_DIR=$PWD exec "$@""#)
    #expect(shared.status == 2)
    #expect(shared.errors.contains("/millrace is not a directory that only this user can access; remove it;"))
  }
}
