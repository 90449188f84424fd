import Millrace

/// What the engine adds to the work itself: the voice uplink, offline, beside a plain loop over the same library calls.
///
/// Both read the same WAV file from the page cache and must write the same bytes; otherwise the comparison means nothing and
/// the suite fails. They take turns, and who goes first changes from pair to pair. Processor time is that of the process, so
/// the engine's other threads are in it.
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
  private static let pairs = 15

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let input = workspace.file("voice.wav")
    let (ours, plain) = (workspace.file("engine.opus"), workspace.file("plain.opus"))
    try Sound.write(Sound.voice(seconds: length, rate: 48_000), rate: 48_000, to: input)
    let plan = try plan(graph, named: "uplink.json", set: ["input": input, "output": ours])
    let engine = Engine(catalogue: .standard, workers: 1)

    var (engineCost, plainCost, ratio): ([Double], [Double], [Double]) = ([], [], [])
    for round in 0...pairs {
      var (first, second) = (0.0, 0.0)
      if round % 2 == 0 {
        first = try cost { _ = try runToEnd(plan, on: engine) }
        second = try cost { try PlainUplink.run(from: input, to: plain) }
      } else {
        second = try cost { try PlainUplink.run(from: input, to: plain) }
        first = try cost { _ = try runToEnd(plan, on: engine) }
      }
      if round == 0 { continue }
      engineCost.append(first)
      plainCost.append(second)
      ratio.append(first / second)
    }
    guard try readBytes(ours) == readBytes(plain) else {
      throw BenchProblem(
        "the engine and the plain loop wrote different files, so their costs cannot be compared")
    }
    let name = "48 -> 16 kHz, level, Opus c5 24 kb/s cvbr, Ogg"
    return [
      Figure("uplink", name, unit: "ms/s", samples: engineCost),
      Figure("uplink", name, of: "floor", unit: "ms/s", samples: plainCost),
      Figure("uplink", "engine / plain loop, pair by pair", unit: "times", goal: "<= 1.05", samples: ratio),
    ]
  }

  /// Milliseconds of processor for each second of sound.
  private static func cost(_ work: () throws -> Void) rethrows -> Double {
    let start = processorSeconds()
    try work()
    return (processorSeconds() - start) * 1e3 / length
  }
}
