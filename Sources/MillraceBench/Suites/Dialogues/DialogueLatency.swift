import CMillraceSys
import Millrace
import MillraceCore
import MillraceDialog
import MillraceDoubles
internal import MillraceJSON
import Synchronization

/// Latencies of one dialogue in which the user speaks over every reply.
enum DialogueLatency {
  private static let rounds = 10.0
  private static let round = 6.0
  /// Audio played later than this after the service ended the reply is stale.
  private static let allowed: Int64 = 20_000_000

  /// What the double observed, in nanoseconds of the monotonic clock.
  private struct Seen: Sendable {
    /// From the capture of a packet to the arrival of its frame, in ms.
    var delays: [Double] = []
    var sent: [Int64] = []
    var ends: [Int64] = []
  }

  private static let text =
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen."

  /// - Parameters:
  ///   - stage: the service.
  ///   - speed: how much faster than spoken replies are sent; nil: as the double usually does. A service that does not learn what was
  ///     played knows of a reply to interrupt only while it sends one: with 1 that is as long as it is heard.
  static func run(_ stage: DialogueStage, speed: Int? = nil) throws -> [Figure] {
    let seen = Mutex(Seen())
    var observer = AudioObserver()
    observer.received = { frame in
      let delay = Double(millrace_monotonic_ns() - StampedVoice.stamp(frame)) / 1e6
      seen.withLock { $0.delays.append(delay) }
    }
    observer.sent = { _ in seen.withLock { $0.sent.append(millrace_monotonic_ns()) } }
    observer.interrupted = { seen.withLock { $0.ends.append(millrace_monotonic_ns()) } }
    let double = try stage.double(
      #"{ "turns": [{ "says": "\#(text)" }]\#(speed.map { #", "speed": \#($0)"# } ?? "") }"#, observer)
    defer { double.stop() }
    let notes = DialogueNotes()
    DialogueNotes.current.withLock { $0 = notes }
    let graph = stage.graph(
      port: double.port, mic: #"{ "type": "bench.stamped" }"#,
      nodes: [#""ear": { "type": "bench.played" }"#, #""notes": { "type": "bench.notes" }"#],
      links: [#""speaker.reference -> ear""#, #""speaker.events -> notes.in1""#])
    let run = try stage.start(graph, on: Engine(catalogue: stage.catalogue, workers: 1))
    pause(rounds * round)
    let epoch = DialogueStage.epoch(of: run)
    try DialogueStage.stop(run)
    let violations = double.seen.violations
    return figures(seen.withLock { $0 }, notes, epoch)
      + [
        Figure(
          "dialogues", "one: violations", unit: "", goal: "0", samples: [Double(violations.count)])
      ]
  }

  private static func figures(_ seen: Seen, _ notes: DialogueNotes, _ epoch: Int64) -> [Figure] {
    let delays = seen.delays.sorted()
    let (silences, stale) = silences(seen, notes.sounds, epoch)
    let replies = replies(seen.sent, notes.events, epoch)
    return [
      Figure(
        "dialogues", "one: last sample of a frame to the wire, p99", unit: "ms", goal: "<= 5",
        samples: [delays.percentile(0.99)]),
      Figure("dialogues", "one: last sample of a frame to the wire", unit: "ms", samples: delays),
      Figure(
        "dialogues", "one: first byte of a reply to the loudspeaker", unit: "ms", goal: "<= 230",
        samples: replies),
      Figure(
        "dialogues", "one: the service's report of the end to silence", unit: "ms", goal: "<= 20",
        samples: silences),
      Figure("dialogues", "one: stale samples", unit: "", goal: "0", samples: [Double(stale)]),
    ]
  }

  /// From each end the service reported to the last sample played of that reply; and the number of stale samples.
  private static func silences(
    _ seen: Seen, _ sounds: [DialogueNotes.Sound], _ epoch: Int64
  ) -> (times: [Double], stale: Int) {
    var times: [Double] = []
    var stale = 0
    for end in seen.ends {
      // Only up to the next reply.
      let next = seen.sent.first { $0 > end + 100_000_000 } ?? .max
      let rest = sounds.filter { $0.last + epoch > end && $0.first + epoch < min(next, end + 1_000_000_000) }
      if let last = rest.map(\.last).max() { times.append(Double(last + epoch - end) / 1e6) }
      stale += rest.filter { $0.last + epoch > end + allowed }.reduce(0) { $0 + $1.samples }
    }
    return (times, stale)
  }

  /// From a reply's first frame to its first audible sample.
  private static func replies(
    _ sent: [Int64], _ events: [DialogueNotes.Event], _ epoch: Int64
  ) -> [Double] {
    var firsts: [Int64] = []
    for (index, time) in sent.enumerated() where index == 0 || time - sent[index - 1] > 500_000_000 {
      firsts.append(time)
    }
    let audible = events.compactMap { event -> Int64? in
      guard event.text.contains(#""replyAudible""#), let json = try? JSONValue(parsing: event.text),
        let at = json["at"]?.double
      else { return nil }
      return Int64(at * 1e9) + epoch
    }
    return firsts.compactMap { first in
      audible.first { $0 > first }.map { Double($0 - first) / 1e6 }
    }
  }
}
