import Glibc
import Millrace

/// The engine's overhead in the voice uplink, offline: next to a plain loop over the same library calls, and next to GStreamer.
///
/// The engine runs the graph twice: on the real-time clock, where files have a thread of their own, and on a virtual clock, where all
/// nodes share one thread. Both and the loop read the same WAV file from the page cache and must write the same bytes; otherwise the
/// comparison is meaningless and the suite fails. (GStreamer has its own resampler; its bytes differ.) All take turns, and each ratio
/// is of one round. Processor time is that of the process, so it includes all threads.
enum UplinkSuite {
  static let graph = """
    {
      "millrace": 1,
      "name": "uplink",
      "parameters": { "input": { "default": "voice.wav" }, "output": { "default": "up.opus" }, "pace": { "default": false } },
      "nodes": {
        "mic": { "type": "audio.read", "path": "${input}", "pace": "${pace}" },
        "to16k": { "type": "audio.resample", "rate": 16000, "align": "file" },
        "meter": { "type": "audio.level", "window": 100 },
        "enc": { "type": "opus.encode", "bitrate": 24000, "complexity": 5, "rateControl": "cvbr" },
        "out": { "type": "ogg.write", "path": "${output}" }
      },
      "links": ["mic -> to16k -> meter -> enc -> out"]
    }
    """

  private static let length = 30.0
  private static let rounds = 15

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let input = workspace.file("voice.wav")
    let (ours, plain) = (workspace.file("engine.opus"), workspace.file("plain.opus"))
    try Sound.write(Sound.voice(seconds: length, rate: 48_000), rate: 48_000, to: input)
    let plan = try plan(graph, named: "uplink.json", set: ["input": input, "output": ours])
    let engine = Engine(catalogue: .standard, workers: 1)
    let oneThread = Engine(catalogue: .standard, clock: .virtual, workers: 1)
    var switches: [Double] = []

    var contestants: [() throws -> Double] = [
      {
        let before = threadSwitches()
        let cost = try cost { _ = try runToEnd(plan, on: engine) }
        switches.append((threadSwitches() - before) / length)
        return cost
      },
      { try cost { _ = try runToEnd(plan, on: oneThread) } },
      { try cost { try PlainUplink.run(from: input, to: plain) } },
    ]
    // The comparison is valid only if both runs write the same bytes as the loop.
    for way in 0..<2 {
      _ = try contestants[way]()
      _ = try contestants[2]()
      guard try readBytes(ours) == readBytes(plain) else {
        throw MeasurementProblem(
          "the engine and the plain loop wrote different files, so their costs cannot be compared")
      }
    }
    switches.removeAll()
    if let peer = Peers.pipeline, peer.missing == nil {
      let theirs = workspace.file("peer.opus")
      contestants.append { try cost { _ = try peer.uplink(from: input, to: theirs) } }
    }
    let costs = try inTurns(rounds: rounds, contestants)
    return figures(costs, switches)
  }

  private static func figures(_ costs: [[Double]], _ switches: [Double]) -> [Figure] {
    let name = "48 -> 16 kHz, level, Opus c5 24 kb/s, Ogg"
    func ratio(_ who: Int) -> [Double] { zip(costs[who], costs[2]).map { $0 / $1 } }
    let theirs = costs.count > 3 ? costs[3] : []
    return [
      Figure("uplink", name, unit: "ms/s", samples: costs[0]),
      Figure("uplink", "\(name): one thread", unit: "ms/s", samples: costs[1]),
      Figure("uplink", name, of: "floor", unit: "ms/s", samples: costs[2]),
      ofPeer("uplink", name, unit: "ms/s", samples: theirs),
      Figure("uplink", "beside the plain loop", unit: "x floor", goal: "<= 1.05", samples: ratio(0)),
      Figure(
        "uplink", "beside the plain loop: one thread", unit: "x floor", goal: "<= 1.05", samples: ratio(1)),
      ofPeer("uplink", "beside the plain loop", unit: "x floor", samples: theirs.isEmpty ? [] : ratio(3)),
      Figure(
        "uplink", "voluntary context switches of the engine", unit: "per s",
        samples: Array(switches.dropFirst())),
    ]
  }

  /// Voluntary context switches of the process so far.
  private static func threadSwitches() -> Double {
    var usage = rusage()
    unsafe getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_nvcsw)
  }

  /// Milliseconds of processor time per second of audio.
  private static func cost(_ work: () throws -> Void) rethrows -> Double {
    let start = processorSeconds()
    try work()
    return (processorSeconds() - start) * 1e3 / length
  }
}
