import CMillraceSys
import Millrace
import Synchronization

/// Twice as many sessions as one core can carry, with load shedding and without.
///
/// A session is a live uplink (48 kHz voice, 16 kHz, Opus at complexity 5) and a picture encoder that takes 6 ms twice a second.
/// A session starts every 40 ms; the engine accepts or refuses it. Three seconds after the last one, three quarters of them
/// end, and the rest continue until pictures are encoded again. All threads share one processor. Contestants take turns in three rounds.
enum OverloadSuite {
  private static let rounds = 3
  /// Seconds between two sessions.
  private static let arrival = 0.04
  /// Seconds with all sessions.
  private static let crowd = 3.0
  /// Seconds to wait for a picture at most, with the sessions that are left.
  private static let patience = 15.0
  /// Milliseconds of voice in the microphone's link and the device buffer, at most.
  private static let bound = 400

  static func run() throws -> [Figure] {
    let voiceOfOne = try LiveFloor.shareOfSession(Sound.voice(seconds: 2, rate: 48_000))
    let offered = 2 * sessions(whoseVoiceTakes: voiceOfOne)
    var outcomes: [[Outcome]] = [[], []]
    for round in 0..<rounds {
      for turn in 0...1 {
        let index = (round + turn) % 2
        outcomes[index].append(
          try Pinned.run(on: Pinned.core) { try crowd(of: offered, hasSteps: index == 0) })
      }
    }
    return Figures(offered: offered, voice: voiceOfOne, with: outcomes[0], without: outcomes[1]).all
  }

  /// The number of sessions that keep one core fully busy, voice and pictures together.
  private static func sessions(whoseVoiceTakes voice: Double) -> Int {
    Int(1 / (voice + 2 * Double(OverloadPictures.work) * 1e-9))
  }

  // MARK: One crowd

  /// The result for one crowd of sessions.
  struct Outcome {
    var taken = 0
    /// Voice packets that reached the end of their session.
    var packets = 0
    /// Those older than 60 ms.
    var old = 0
    /// The oldest, in milliseconds.
    var oldest = 0.0
    /// Frames that devices and links dropped.
    var dropped = 0
    /// Packets that were neither delivered nor counted as dropped.
    var unaccounted = 0
    var pictures = 0
    /// Seconds from the end of the crowd to the next picture; the longest wait when there was none.
    var recovery = 0.0
  }

  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(OverloadVoice.self)
    catalogue.add(OverloadSink.self)
    catalogue.add(OverloadPictures.self)
    return catalogue
  }()

  private static func graph(hasSteps: Bool) -> String {
    let steps = """
      , "overload": [
          { "above": 70, "shed": ["pictures"] },
          { "above": 80, "set": { "enc.complexity": 1 } },
          { "above": 90, "refuse": true } ]
      """
    return """
      { "millrace": 1, "name": "session",
        "nodes": {
          "mic": { "type": "bench.microphone" },
          "to16k": { "type": "audio.resample", "rate": 16000 },
          "enc": { "type": "opus.encode", "bitrate": 24000, "complexity": 5, "rateControl": "cvbr" },
          "out": { "type": "bench.age" },
          "pictures": { "type": "bench.pictures" } },
        "links": [
          { "from": "mic", "to": "to16k", "capacity": "200ms", "whenFull": "dropOldest" },
          "to16k -> enc -> out",
          { "from": "mic", "to": "pictures", "capacity": "200ms", "whenFull": "dropOldest" } ]
        \(hasSteps ? steps : "") }
      """
  }

  private static func crowd(of offered: Int, hasSteps: Bool) throws -> Outcome {
    let tally = OverloadTally()
    OverloadTally.current.withLock { $0 = tally }
    let engine = Engine(catalogue: catalogue, workers: 1)
    let plan = try Graph.load(text: graph(hasSteps: hasSteps), name: "session.json", catalogue: catalogue)
    var outcome = Outcome()
    var runs: [GraphRun] = []
    for _ in 0..<offered {
      // The engine refuses sessions under overload: that is measured here, and is no failure.
      if let run = try? engine.prepare(plan, observesEvents: false) {
        runs.append(run)
        run.start()
      }
      pause(arrival)
    }
    outcome.taken = runs.count
    pause(crowd)
    outcome.pictures = tally.pictures.load(ordering: .relaxed)
    let rest = runs.count / 4
    let end = millrace_monotonic_ns()
    for run in runs.dropFirst(rest) { run.stop() }
    var reports = try runs.dropFirst(rest).map { try finished($0) }
    // A picture that was in progress when the crowd ended does not count.
    let settled = Int(end + 100_000_000)
    while tally.lastPicture.load(ordering: .relaxed) < settled && seconds() < Double(end) * 1e-9 + patience {
      pause(0.01)
    }
    outcome.recovery = Double(max(Int(end), tally.lastPicture.load(ordering: .relaxed)) - Int(end)) * 1e-9
    for run in runs.prefix(rest) { run.stop() }
    reports += try runs.prefix(rest).map { try finished($0) }
    add(reports, tally, to: &outcome)
    return outcome
  }

  private static func add(_ reports: [RunReport], _ tally: OverloadTally, to outcome: inout Outcome) {
    outcome.packets = tally.voice.total
    outcome.old = outcome.packets - tally.voice.count(within: 60_000_000)
    outcome.oldest = Double(tally.oldest.load(ordering: .relaxed)) / 1e6
    outcome.dropped = tally.overruns.load(ordering: .relaxed)
    for report in reports {
      for link in report.links {
        // Packets dropped at the reader have left the link, and so have stale and shed ones.
        outcome.unaccounted += link.pushed - link.popped - link.droppedOldest - link.discarded
        if link.name.hasSuffix("to16k") { outcome.dropped += link.dropped }
      }
    }
  }

  // MARK: Figures

  private struct Figures {
    var offered: Int
    var voice: Double
    var with: [Outcome]
    var without: [Outcome]

    var all: [Figure] {
      row("sessions accepted of \(offered), twice what the core can carry", "sessions") { Double($0.taken) }
        + row("voice packets older than 60 ms", "%") { 100 * Double($0.old) / Double(max(1, $0.packets)) }
        + row("oldest voice packet", "ms", goal: "<= \(bound)") { $0.oldest }
        + row("voice frames dropped, each counted", "%") {
          100 * Double($0.dropped) / Double(max(1, $0.packets + $0.dropped))
        }
        + row("packets neither delivered nor counted", "packets", goal: "0") { Double($0.unaccounted) }
        + row("pictures encoded in the crowd", "per session") {
          Double($0.pictures) / Double(max(1, $0.taken))
        }
        + [
          Figure(
            "overload", "processor time for the voice of all \(offered) in a plain loop", of: "floor",
            unit: "%",
            samples: [100 * voice * Double(offered)])
        ]
        + row("from the end of the crowd to the next picture", "s") { $0.recovery }
    }

    private func row(
      _ name: String, _ unit: String, goal: String = "", _ value: (Outcome) -> Double
    ) -> [Figure] {
      [
        Figure("overload", name, unit: unit, goal: goal, samples: with.map(value)),
        Figure("overload", "\(name): without load shedding", unit: unit, samples: without.map(value)),
      ]
    }
  }
}
