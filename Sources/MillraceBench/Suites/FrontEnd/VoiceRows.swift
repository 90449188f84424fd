import Millrace

/// The voice detector, the noise suppressors and the automatic gain: processor time per second of audio, each as a node of a
/// graph, in packets of 20 ms.
enum VoiceRows {
  private static let length = 30.0
  private static let rounds = 7

  /// A node, the contestant, and the goal.
  private struct Row {
    let name: String
    var subject = "millrace"
    var rate = 16_000
    let node: String
    var goal = ""
  }

  private static let rows = [
    Row(
      name: "voice detector, 16 kHz: processor", node: #""type": "audio.vad""#, goal: "<= 1.6"),
    Row(name: "voice detector, 8 kHz: processor", rate: 8_000, node: #""type": "audio.vad""#),
    Row(name: "voice detector, 48 kHz: processor", rate: 48_000, node: #""type": "audio.vad""#),
    Row(
      name: "voice detector without a model: processor", node: #""type": "audio.vad", "engine": "energy""#),
    Row(name: "noise suppressor, 16 kHz: processor", node: #""type": "audio.denoise""#, goal: "<= 3"),
    Row(
      name: "noise suppressor, 16 kHz: processor", subject: "speexdsp",
      node: #""type": "audio.denoise", "engine": "speex""#),
    Row(
      name: "automatic gain and limiter, 48 kHz: processor", rate: 48_000, node: #""type": "audio.autoGain""#),
  ]

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    for rate in Set(rows.map(\.rate)) {
      try Sound.write(Sound.voice(seconds: length, rate: rate), rate: rate, to: workspace.file("\(rate).wav"))
    }
    let engine = Engine(catalogue: .standard, clock: .virtual)
    return try rows.map { row in
      let plan: GraphPlan
      do {
        plan = try Self.plan(row, input: workspace.file("\(row.rate).wav"))
      } catch let problems as Problems {
        // The detector's weights are not part of a build. The position in the generated graph is of no use to the reader.
        let reasons = problems.sorted.map { [$0.text, $0.hint].compactMap(\.self).joined(separator: "; ") }
        return Figure("front-end", row.name, of: row.subject, skipped: reasons.joined(separator: "; "))
      }
      let samples = try (0...rounds).map { _ in try cost(plan, engine) }
      return Figure(
        "front-end", row.name, of: row.subject, unit: "ms/s", goal: row.goal,
        samples: Array(samples.dropFirst()))
    }
  }

  private static func plan(_ row: Row, input: String) throws -> GraphPlan {
    try MillraceBench.plan(
      """
      { "millrace": 1, "name": "front-end", "clock": "virtual", "parameters": { "input": { "default": "" } },
        "nodes": {
          "mic": { "type": "audio.read", "path": "${input}", "pace": true },
          "node": { \(row.node) },
          "out": { "type": "flow.null" } },
        "links": ["mic -> node -> out"] }
      """, named: "front-end.json", set: ["input": input])
  }

  /// Milliseconds in the node's calls per second of audio.
  private static func cost(_ plan: GraphPlan, _ engine: Engine) throws -> Double {
    let report = try runToEnd(plan, on: engine)
    guard let node = report.nodes.first(where: { $0.name == "node" }) else {
      throw MeasurementProblem("the report does not contain the node")
    }
    return Double(node.busy) / 1e6 / length
  }
}
