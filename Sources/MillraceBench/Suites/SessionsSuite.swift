import Millrace

/// How many live uplinks one core can carry: 48 kHz voice from memory, 16 kHz, Opus at complexity 5, a packet every 20 ms.
///
/// A number of sessions is carried when at most 0.1 % of the packets of 3 s, after 1 s of warm-up, are more than 20 ms late or
/// missing. When the first of two attempts fails, the second decides, because other load on the machine can only make it worse. The
/// search for the limit starts from the last one found, in strides of 20, 40 and so on, down to steps of 5. All threads of a contestant,
/// timers and helpers included, share one processor. Contestants take turns in three rounds of searching.
enum SessionsSuite {
  private static let rounds = 3
  private static let step = 5
  private static let stride = 20
  private static let tries = 2
  private static let lateness = 20_000_000
  private static let allowed = 0.001
  /// The most numbers a search tries, so that the suite ends.
  private static let probes = 12

  static func run() throws -> [Figure] {
    var contestants: [any LiveContestant] = [LiveFloor(), LiveMillrace()]
    if let peer = Peers.pipeline, peer.missing == nil { contestants.append(LivePeer(peer: peer)) }
    let voice = Sound.voice(seconds: 20, rate: 48_000)
    var loads: [LiveLoad] = []
    var limits = [[Double]](repeating: [], count: contestants.count)
    var tails = limits
    for contestant in contestants { loads.append(try calibrated(contestant, voice)) }
    var guess = [Int](repeating: try firstGuess(voice), count: contestants.count)
    for _ in 0..<rounds {
      for (index, contestant) in contestants.enumerated() {
        let found = try limit(of: contestant, loads[index], from: guess[index])
        guess[index] = max(step, found.sessions)
        limits[index].append(Double(found.sessions))
        tails[index].append(found.tail)
      }
    }
    return figures(contestants.map(\.name), limits, tails)
  }

  private static func figures(_ names: [String], _ limits: [[Double]], _ tails: [[Double]]) -> [Figure] {
    let name = "live uplinks on one core"
    let ratios = zip(limits[1], limits[0]).map { $0 / $1 }
    func row(_ name: String, _ unit: String, goal: String, _ all: [[Double]]) -> [Figure] {
      let own = zip(names, all).filter { $0.0 == "millrace" || $0.0 == "floor" }.map { who, samples in
        Figure("sessions", name, of: who, unit: unit, goal: who == "millrace" ? goal : "", samples: samples)
      }
      return own + [ofPeer("sessions", name, unit: unit, samples: all.count > 2 ? all[2] : [])]
    }
    return row(name, "sessions", goal: ">= 125", limits)
      + [
        Figure("sessions", "\(name), beside the plain loop", unit: "x floor", goal: ">= 0.9", samples: ratios)
      ]
      + row("lateness there: p99", "ms", goal: "", tails)
  }

  /// The load for a contestant, with its own delay in frames, as measured with a single session.
  private static func calibrated(_ contestant: any LiveContestant, _ voice: [Int16]) throws -> LiveLoad {
    var load = LiveLoad(sessions: 1, voice: voice, core: Pinned.core, warmUp: 10, measured: 50)
    let bars = LatenessBars()
    try contestant.run(load, bars)
    guard bars.total > 0 else { throw MeasurementProblem("\(contestant.name) delivered no packet") }
    load.framesBehind = Int(bars.percentile(0.5)) / LiveLoad.frameTime
    load.warmUp = 50
    load.measured = 150
    return load
  }

  /// The number of sessions the floor should carry: nine tenths of what fits into the processor's time.
  private static func firstGuess(_ voice: [Int16]) throws -> Int {
    max(step, Int(0.9 / (try LiveFloor.shareOfSession(voice))) / step * step)
  }

  /// The largest number of sessions that the contestant carries, and the 99th percentile of lateness there in ms.
  static func limit(
    of contestant: any LiveContestant, _ load: LiveLoad, from guess: Int
  ) throws -> (sessions: Int, tail: Double) {
    var passed = (sessions: 0, tail: Double.nan)
    var failed = Int.max
    var next = guess
    var width = stride
    for _ in 0..<probes {
      if let tail = try carries(next, contestant, load) {
        passed = (next, tail)
      } else {
        failed = next
      }
      if failed - passed.sessions <= step { break }
      if failed == Int.max {
        next += width
      } else if passed.sessions == 0 {
        next = max(step, next - width)
      } else {
        // The limit lies between two numbers: bisect.
        next = max(passed.sessions + step, (passed.sessions + failed) / 2 / step * step)
      }
      width *= 2
    }
    return passed
  }

  /// The 99th percentile of lateness in ms if the contestant carries this number of sessions; nil if it does not.
  private static func carries(
    _ sessions: Int, _ contestant: any LiveContestant, _ load: LiveLoad
  ) throws -> Double? {
    var load = load
    load.sessions = sessions
    for _ in 0..<tries {
      let bars = LatenessBars()
      try contestant.run(load, bars)
      let expected = Double(load.sessions * load.measured)
      if Double(bars.count(within: lateness)) >= expected * (1 - allowed) {
        return bars.percentile(0.99) / 1e6
      }
    }
    return nil
  }
}
