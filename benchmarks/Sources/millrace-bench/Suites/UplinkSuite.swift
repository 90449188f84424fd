import Glibc
import Millrace

/// What the engine adds to the work itself: the voice uplink, offline, beside a plain loop over the same library calls.
///
/// The engine runs the graph twice: on the real clock, where files have a thread of their own, and on a virtual clock, where
/// all nodes share one. All three read the same WAV file from the page cache and must write the same bytes; otherwise the
/// comparison means nothing and the suite fails. They take turns, and who goes first changes from round to round; a ratio is
/// that of one round. Processor time is that of the process, so the engine's other threads are in it.
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

    var costs = [[Double]](repeating: [], count: 3)
    var switches: [Double] = []
    var written: [[UInt8]] = []
    for round in 0...rounds {
      var figures = [0.0, 0.0, 0.0]
      for turn in 0..<3 {
        let who = (round + turn) % 3
        let before = threadSwitches()
        figures[who] = try cost {
          switch who {
          case 0: _ = try runToEnd(plan, on: engine)
          case 1: _ = try runToEnd(plan, on: oneThread)
          default: try PlainUplink.run(from: input, to: plain)
          }
        }
        if who == 0 && round > 0 { switches.append((threadSwitches() - before) / length) }
        if who < 2 && round == 0 { written.append(try readBytes(ours)) }
      }
      if round > 0 { for who in 0..<3 { costs[who].append(figures[who]) } }
    }
    let expected = try readBytes(plain)
    guard written.count == 2, written.allSatisfy({ $0 == expected }) else {
      throw BenchProblem(
        "the engine and the plain loop wrote different files, so their costs cannot be compared")
    }
    let name = "48 -> 16 kHz, level, Opus c5 24 kb/s, Ogg"
    func ratio(_ who: Int) -> [Double] { zip(costs[who], costs[2]).map { $0 / $1 } }
    return [
      Figure("uplink", name, unit: "ms/s", samples: costs[0]),
      Figure("uplink", "48 -> 16, level, Opus, Ogg: on one thread", unit: "ms/s", samples: costs[1]),
      Figure("uplink", name, of: "floor", unit: "ms/s", samples: costs[2]),
      Figure("uplink", "engine / plain loop", unit: "times", goal: "<= 1.05", samples: ratio(0)),
      Figure(
        "uplink", "engine on one thread / plain loop", unit: "times", goal: "<= 1.05", samples: ratio(1)),
      Figure("uplink", "thread switches of the engine", unit: "per s", samples: switches),
    ]
  }

  /// Times a thread of the process gave its processor up by itself, so far.
  private static func threadSwitches() -> Double {
    var usage = rusage()
    getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_nvcsw)
  }

  /// Milliseconds of processor for each second of sound.
  private static func cost(_ work: () throws -> Void) rethrows -> Double {
    let start = processorSeconds()
    try work()
    return (processorSeconds() - start) * 1e3 / length
  }
}
