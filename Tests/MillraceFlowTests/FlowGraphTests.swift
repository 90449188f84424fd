import Foundation
import MillraceCore
import MillraceEngine
import MillraceFlow
import MillraceGraph
import Testing

@Suite("flow nodes in graphs", .serialized) struct FlowGraphTests {
  private func run(_ text: String) throws -> RunReport {
    let plan = try Graph.load(text: text, name: "graph.json", catalogue: .flow)
    let engine = Engine(catalogue: .flow, workers: 1)
    return try #require(try engine.start(plan).waitUntilStopped(timeout: .seconds(120)))
  }

  @Test("three chained programs pass every line to the end, then the graph ends by itself")
  func programs() throws {
    let scratch = Scratch()
    let report = try run(
      """
      { "millrace": 1, "name": "programs",
        "nodes": {
          "count": { "type": "process.pipe", "command": ["seq", "20000"], "mode": "lines" },
          "pass": { "type": "process.pipe", "command": ["cat"], "mode": "lines" },
          "keep": { "type": "process.pipe", "command": ["sh", "-c", "cat > '\(scratch.path("kept"))'"] }
        },
        "links": ["count -> pass -> keep"] }
      """)
    #expect(report.failure == nil)
    #expect(scratch.text("kept") == (1...20_000).map { "\($0)\n" }.joined())
    #expect(report.leakedBlocks == 0)
  }

  @Test("a program that fails stops the graph, and the error quotes its standard error")
  func failure() throws {
    let report = try run(
      """
      { "millrace": 1, "name": "failing",
        "nodes": {
          "count": { "type": "process.pipe", "command": ["sh", "-c", "echo 1; echo lost it >&2; exit 4"], "mode": "lines" },
          "nothing": { "type": "flow.null" }
        },
        "links": ["count -> nothing"] }
      """)
    #expect(
      report.failure?.description
        == "node \"count\": the program \"sh\" exited with status 4; standard error: lost it")
    #expect(report.leakedBlocks == 0)
  }

  @Test("a tee's branches end with it, and both totals reach the log")
  func teeToLog() throws {
    let scratch = Scratch()
    let report = try run(
      """
      { "millrace": 1, "name": "tee",
        "nodes": {
          "count": { "type": "process.pipe", "command": ["seq", "500"], "mode": "lines" },
          "tee": { "type": "flow.tee" },
          "left": { "type": "flow.null" },
          "right": { "type": "flow.null" },
          "log": { "type": "event.log", "path": "\(scratch.path("log"))" }
        },
        "links": [
          "count -> tee", "tee.out1 -> left", "tee.out2 -> right",
          "left.events -> log.in1", "right.events -> log.in2"
        ] }
      """)
    #expect(report.failure == nil)
    let lines = scratch.text("log").split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.contains("\"event\":\"total\"") && $0.contains("\"packets\":500") })
  }
}
