import Millrace

/// How much faster than real time a graph runs on the virtual clock.
enum VirtualSuite {
  private static let length = 60.0
  private static let graph = """
    { "millrace": 1, "name": "virtual", "clock": "virtual", "parameters": { "input": { "default": "" } },
      "nodes": {
        "mic": { "type": "audio.read", "path": "${input}", "pace": true },
        "to16k": { "type": "audio.resample", "rate": 16000 },
        "meter": { "type": "audio.level", "window": 100 },
        "out": { "type": "flow.null" } },
      "links": ["mic -> to16k -> meter -> out"] }
    """

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let input = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: length, rate: 48_000), rate: 48_000, to: input)
    let engine = Engine(catalogue: .standard, clock: .virtual)
    let plain = try plan(graph, named: "virtual.json", set: ["input": input])
    let coded = try plan(
      UplinkSuite.graph, named: "uplink.json",
      set: ["input": input, "output": workspace.file("up.opus"), "pace": "true"])
    func speed(_ plan: GraphPlan) throws -> Double {
      let start = seconds()
      let report = try runToEnd(plan, on: engine)
      let wall = seconds() - start
      // The clock must have advanced by the whole length of the audio.
      guard Double(report.duration) >= (length - 0.1) * 1e9 else {
        throw MeasurementProblem(
          "the graph's clock is at \(report.duration) ns after \(length) s of audio")
      }
      return length / wall
    }
    let measured = try inTurns(rounds: 7, [{ try speed(plain) }, { try speed(coded) }])
    return [
      Figure(
        "virtual", "the uplink without encoder", unit: "x real time", goal: ">= 100", samples: measured[0]),
      Figure("virtual", "the uplink with Opus and Ogg", unit: "x real time", samples: measured[1]),
    ]
  }
}
