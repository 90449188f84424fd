import CMillraceSys
import Millrace
import Synchronization

/// How soon the last node is notified that the bot's reply was cancelled, with up to 500 packets of it queued.
///
/// A source emits a whole reply at once; eight nodes pass it on to a sink that takes a packet every 20 ms. On one worker all of
/// them are voice nodes; on two, the source and half of the others run on the bulk worker. Measured from the call of `interrupt`
/// to the sink's `interrupted`. Packets of the old reply that the sink takes after that are counted; there must be none.
enum InterruptSuite {
  private static let passes = 8
  /// Packets per link, so that the chain holds the longest reply.
  private static let limit = 64
  private static let backlogs = [1, 20, 500]
  private static let interruptions = 200
  private static let runs = 3
  /// Time for a reply to fill the chain.
  private static let fill = 0.004

  static func run() throws -> [Figure] {
    var figures: [Figure] = []
    for workers in [1, 2] {
      for backlog in backlogs { figures += try interrupt(backlog: backlog, workers: workers) }
    }
    return figures + (try ofPeer(backlog: 500))
  }

  private static func interrupt(backlog: Int, workers: Int) throws -> [Figure] {
    var median: [Double] = []
    var tail: [Double] = []
    var stale: [Double] = []
    for _ in 0..<runs {
      let delays = try measure(backlog: backlog, workers: workers, times: interruptions).sorted()
      median.append(delays.percentile(0.5) / 1e3)
      tail.append(delays.percentile(0.99) / 1e3)
      stale.append(Double(ReplySink.stale.exchange(0, ordering: .relaxed)))
    }
    let name = "to the last node, \(backlog) queued, \(workers) worker\(workers == 1 ? "" : "s")"
    return [
      Figure("interrupt", "\(name): p50", unit: "us", samples: median),
      Figure("interrupt", "\(name): p99", unit: "us", goal: "<= 100", samples: tail),
      Figure("interrupt", "\(name): stale packets", unit: "packets", goal: "0", samples: stale),
    ]
  }

  /// Nanoseconds from each interruption to the sink.
  static func measure(backlog: Int, workers: Int, times: Int) throws -> [Double] {
    let engine = Engine(catalogue: Chain.catalogue, workers: 1)
    let plan = Chain.plan(
      first: (ReplySource.contract, ["count": .integer(backlog)]), passes: passes,
      last: (ReplySink.contract, [:]),
      limit: limit, policy: .block
    ) { workers == 2 && $0 <= passes / 2 ? .bulk : .voice }
    ReplySink.taken.store(0, ordering: .relaxed)
    let run = try engine.start(plan, observesEvents: false)
    try wait("no packet of the first reply reached the sink") {
      ReplySink.taken.load(ordering: .relaxed) > 0
    }
    var delays: [Double] = []
    for _ in 0..<times {
      pause(fill)
      let start = Int(millrace_monotonic_ns())
      run.interrupt()
      try wait("the sink was not notified") { ReplySink.notified.load(ordering: .acquiring) >= start }
      delays.append(Double(ReplySink.notified.load(ordering: .acquiring) - start))
    }
    run.stop()
    _ = try finished(run)
    return delays
  }

  private static func wait(_ problem: String, until isSo: () -> Bool) throws {
    let end = millrace_monotonic_ns() + 60_000_000_000
    while !isSo() {
      guard millrace_monotonic_ns() < end else { throw MeasurementProblem("\(problem) within a minute") }
      pause(0.000_2)
    }
  }

  private static func ofPeer(backlog: Int) throws -> [Figure] {
    var samples: [[Double]] = []
    if let peer = Peers.pipeline, peer.missing == nil {
      for _ in 0..<runs {
        let delays = try peer.interrupt(backlog: backlog, passes: passes, rounds: 50).sorted()
        samples.append([delays.percentile(0.5) / 1e3, delays.percentile(0.99) / 1e3])
      }
    }
    return ["p50", "p99"].enumerated().map { index, label in
      MillraceBench.ofPeer(
        "interrupt", "to the last node, \(backlog) queued, a queue: \(label)", unit: "us",
        samples: samples.map { $0[index] })
    }
  }
}
