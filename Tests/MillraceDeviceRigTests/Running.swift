import Foundation
import Millrace

/// A graph running on the rig, and its events.
struct Running {
  let run: GraphRun
  let log: String

  /// Starts a shipped graph.
  init(_ name: String, _ values: [String: String] = [:], in folder: String) throws {
    try self.init(path: Self.shipped(name), values, in: folder)
  }

  /// Starts a graph that has a parameter `log`.
  init(path: String, _ values: [String: String] = [:], in folder: String) throws {
    log = folder + "/events.jsonl"
    let plan = try Graph.load(
      path: path,
      settings: GraphSettings(set: values.merging(["log": log]) { $1 }, clock: .realtime),
      catalogue: .standard)
    run = try Engine(catalogue: .standard, clock: .realtime).start(plan)
  }

  /// The events so far, as lines of JSON.
  var events: [String] {
    ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
  }

  /// Waits for an event of a node; false on timeout.
  func wait(for name: String, of node: String, seconds: Double) -> Bool {
    poll(seconds: seconds) {
      events.contains { $0.contains("\"event\":\"\(name)\"") && $0.contains("\"node\":\"\(node)\"") }
    }
  }

  /// Stops the graph.
  func end() throws -> RunReport {
    run.stop()
    guard let report = run.waitUntilStopped(timeout: .milliseconds(60_000)) else {
      throw RigProblem("the graph did not stop")
    }
    return report
  }

  /// Path of a file next to the package manifest.
  static func shipped(_ name: String) -> String {
    var folder = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { folder.deleteLastPathComponent() }
    return folder.appendingPathComponent("graphs/\(name).json").path
  }
}
