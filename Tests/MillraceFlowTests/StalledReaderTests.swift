import Foundation
import MillraceCore
import MillraceEngine
import MillraceFlow
import MillraceGraph
import MillraceTesting
import Testing

/// A named pipe whose reader, this test, reads on demand.
private final class SlowReader {
  private let descriptor: Int32
  private(set) var bytes: [UInt8] = []

  init(_ path: String) throws {
    try #require(mkfifo(path, 0o600) == 0)
    descriptor = open(path, O_RDONLY | O_NONBLOCK)
    try #require(descriptor >= 0)
  }

  deinit { close(descriptor) }

  /// Reads what is there now.
  func read() {
    var part = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &part, part.count)
      guard count > 0 else { return }
      bytes += part[..<count]
    }
  }

  /// Waits until there is something to read, and does not read it.
  func waitForBytes() {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while poll(&wanted, 1, 100) < 1 || wanted.revents & Int16(POLLIN) == 0 {}
  }

  var lineCount: Int { bytes.count { $0 == 10 } }
}

@Suite("lines for a stalled reader", .serialized, .timeLimit(.minutes(30)))
struct StalledReaderTests {
  private let scratch = Scratch()
  private var pipe: String { scratch.path("pipe") }

  /// Runs a program that writes to the pipe and another that writes to a file, both on the bulk lane.
  private func start(lines: String, patience: Int = 1_000) throws -> (Engine, GraphRun) {
    let text = """
      { "millrace": 1, "name": "stalled",
        "nodes": {
          "many": { "type": "process.pipe", "command": [\(lines)], "mode": "lines" },
          "slow": { "type": "event.log", "path": "\(pipe)", "patience": \(patience) },
          "few": { "type": "process.pipe", "command": ["seq", "500"], "mode": "lines" },
          "other": { "type": "event.log", "path": "\(scratch.path("other"))" }
        },
        "links": ["many -> slow.in1", "few -> other.in1"] }
      """
    let plan = try Graph.load(text: text, name: "graph.json", catalogue: .flow)
    let engine = Engine(catalogue: .flow, workers: 1)
    return (engine, try engine.start(plan))
  }

  /// Waits until the other node has written all its lines, by polling the file.
  private func waitForOther() {
    while scratch.text("other").utf8.count(where: { $0 == 10 }) < 500 { usleep(2000) }
  }

  @Test("it delays neither other nodes nor the stop")
  func stop() throws {
    let reader = try SlowReader(pipe)
    let (engine, run) = try start(lines: #""seq", "100000""#)
    waitForOther()
    reader.waitForBytes()
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.detachedNodes == [])
    #expect(report.failure == nil)
    #expect(report.leakedBlocks == 0)
    reader.read()
    #expect(!reader.bytes.isEmpty)
    #expect((1...100_000).lazy.flatMap { "\($0)\n".utf8 }.starts(with: reader.bytes))
    withExtendedLifetime(engine) {}
  }

  @Test("it gets every line when it reads again")
  func readsOn() throws {
    let reader = try SlowReader(pipe)
    let (engine, run) = try start(lines: #""seq", "100000""#, patience: 600_000)
    waitForOther()
    var report: RunReport?
    while report == nil {
      reader.read()
      report = run.waitUntilStopped(timeout: .milliseconds(1))
    }
    reader.read()
    #expect(report?.failure == nil)
    #expect(String(decoding: reader.bytes, as: UTF8.self) == (1...100_000).map { "\($0)\n" }.joined())
    withExtendedLifetime(engine) {}
  }

  @Test("at the end it has its patience, then the node fails and reports what was not written")
  func givenUp() throws {
    let reader = try SlowReader(pipe)
    let (engine, run) = try start(lines: #""seq", "-f", "%01000g", "75""#, patience: 50)
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let words = try #require(report.failure?.text)
    let pattern =
      #/the reader of "(.*)" took nothing for 50 ms: (\d+) lines \((\d+) bytes\) and the packets still queued in the links were not written; keep it reading, or raise "patience"/#
    let match = try #require(words.wholeMatch(of: pattern), "\(words)")
    #expect(match.1 == pipe)
    reader.read()
    let link = try #require(report.links.first { $0.name.hasPrefix("many") })
    let waiting = link.pushed - link.popped
    #expect(reader.lineCount + (Int(match.2) ?? 0) + waiting == 75, "no line is lost without a count")
    #expect(reader.bytes.count + (Int(match.3) ?? 0) + waiting * 1_001 == 75 * 1_001)
    withExtendedLifetime(engine) {}
  }

  @Test("on a virtual clock the sink blocks for it, and gives up after the same time")
  func virtual() throws {
    let reader = try SlowReader(pipe)
    let bench = try NodeBench(
      EventLog.self, ["path": .string(pipe), "patience": 20], inputs: ["in1": events])
    for _ in 0..<100 { bench.push(text: String(repeating: "x", count: 999)) }
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(fault?.text?.hasPrefix("the reader of \"\(pipe)\" took nothing for 20 ms: ") == true)
    reader.read()
    #expect(reader.bytes.count > 32_768)
  }

  @Test("a named pipe without a reader is refused")
  func nobody() throws {
    try #require(mkfifo(pipe, 0o600) == 0)
    let text = #expect(throws: BenchProblem.self) {
      try NodeBench(EventLog.self, ["path": .string(pipe)], inputs: ["in1": events])
    }
    #expect(text?.description == "the pipe \"\(pipe)\" has no reader; start its reader first")
  }

  @Test("logs may share a file they append to; one that replaces its content has it alone")
  func claims() throws {
    let path = ParameterValue.string(scratch.path("log"))
    func log(append: Bool) throws -> NodeBench {
      try NodeBench(EventLog.self, ["path": path, "append": .bool(append)], inputs: ["in1": events])
    }
    let (first, second) = (try log(append: true), try log(append: true))
    for bench in [first, second, first] {
      bench.push(text: "{}")
      try bench.run()
    }
    #expect(scratch.text("log") == "{}\n{}\n{}\n")
    let refusal = #expect(throws: BenchProblem.self) { try log(append: false) }
    #expect(
      refusal?.description
        == "\"\(scratch.path("log"))\" is being read or written by another node or program; write to another file; "
        + "several instances need one each (put {instance} in the name)")
    #expect(scratch.text("log") == "{}\n{}\n{}\n")
    #expect(first.close() + second.close() == [])
  }
}
