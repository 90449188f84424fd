import Millrace

/// How soon sound comes out: the uplink graph that ships with the project, from the request to the first packet at its sink.
enum StartSuite {
  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let input = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 1, rate: 48_000), rate: 48_000, to: input)
    let settings = GraphSettings(set: ["input": input, "output": workspace.file("up.opus"), "pace": "false"])

    var prepared: [Double] = []
    var whole: [Double] = []
    let engine = Engine(catalogue: .standard)
    let plan = try Graph.load(path: uplinkGraph, settings: settings, catalogue: .standard)
    for round in 0..<21 {
      let start = seconds()
      let time = try firstPacket(since: start, engine.prepare(plan))
      // The first round loads libraries and fills the pools.
      if round > 0 { prepared.append(time) }
    }
    for _ in 0..<21 {
      let start = seconds()
      let plan = try Graph.load(path: uplinkGraph, settings: settings, catalogue: .standard)
      let engine = Engine(catalogue: .standard)
      whole.append(try firstPacket(since: start, engine.prepare(plan)))
    }
    return [
      Figure(
        "start", "prepare and start to first packet at sink", unit: "ms", goal: "<= 15", samples: prepared),
      Figure("start", "the same with load, check and a new engine", unit: "ms", samples: whole),
    ]
  }

  /// Starts a prepared run and answers the milliseconds from `start` to the first packet at its sink.
  private static func firstPacket(since start: Double, _ run: GraphRun) throws -> Double {
    let passed = seconds() - start
    run.start()
    guard let first = try finished(run).timeToFirstPacket else {
      throw BenchProblem("no packet reached the sink")
    }
    return passed * 1e3 + Double(first) / 1e6
  }
}
