import Millrace

/// Start-up time: the uplink from file to file, from the request to the first packet at its sink.
enum StartSuite {
  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let input = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 1, rate: 48_000), rate: 48_000, to: input)
    let (ours, theirs) = (workspace.file("up.opus"), workspace.file("peer.opus"))
    func load() throws -> GraphPlan {
      try plan(UplinkSuite.graph, named: "uplink.json", set: ["input": input, "output": ours])
    }
    let engine = Engine(catalogue: .standard)
    let graph = try load()
    let prepared = try inTurns(
      rounds: 20,
      [
        {
          let start = seconds()
          return try firstPacket(since: start, engine.prepare(graph))
        }
      ])[0]
    let whole = try beside(
      "start", "from the graph's text to the first packet at the sink", unit: "ms", rounds: 20,
      ours: {
        let start = seconds()
        return try firstPacket(since: start, Engine(catalogue: .standard).prepare(load()))
      }, theirs: { try $0.uplink(from: input, to: theirs) * 1e3 })
    let name = "from a plan to the first packet at the sink"
    return [Figure("start", name, unit: "ms", goal: "<= 15", samples: prepared)] + whole
  }

  /// Starts a prepared run and returns the milliseconds from `start` to the first packet at its sink.
  private static func firstPacket(since start: Double, _ run: GraphRun) throws -> Double {
    let passed = seconds() - start
    run.start()
    guard let first = try finished(run).timeToFirstPacket else {
      throw MeasurementProblem("no packet reached the sink")
    }
    return passed * 1e3 + Double(first) / 1e6
  }
}
