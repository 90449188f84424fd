import Millrace
import MillraceCore
import Synchronization

/// The engine's overhead: the cost of a hop, with statistics and trace on as always.
///
/// On one worker a hop is one call of a node and one link, measured in a chain of ten nodes that pass on empty packets. Between
/// workers it is a link whose reader runs on another thread: with both threads busy for the cost of a packet, and with the reader
/// asleep for the latency of one, which includes waking it.
enum HopSuite {
  private static let packets = 200_000
  private static let rounds = 9
  private static let length = 10
  /// The default size of GStreamer's queue, in buffers.
  private static let depth = 200
  /// Microseconds between packets, so that each finds the other thread asleep.
  private static let interval = 2_000

  static func run() throws -> [Figure] {
    try onOneWorker() + betweenWorkers() + delays()
  }

  /// Nanoseconds of a hop in the chain.
  static func chain(on engine: Engine) throws -> Double {
    let report = try runToEnd(Chain(nodes: length, packets: packets).plan, on: engine)
    return Double(report.duration) / Double(report.nodes.reduce(0) { $0 + $1.activations })
  }

  private static func onOneWorker() throws -> [Figure] {
    let engine = Engine(catalogue: Chain.catalogue, workers: 1)
    let name = "one call and link, chain of \(length), one worker, traced"
    return try beside(
      "hop", name, unit: "ns", goal: "<= 60", rounds: rounds,
      ours: { try chain(on: engine) },
      theirs: { peer in
        try peer.chain(passes: length - 2, packets: packets) * 1e9 / Double(packets * length)
      })
  }

  private static func betweenWorkers() throws -> [Figure] {
    let engine = Engine(catalogue: Chain.catalogue, workers: 1)
    let plan = Chain(nodes: 2, packets: packets, limit: depth, crosses: true).plan
    return try beside(
      "hop", "a packet from worker to worker, both busy", unit: "ns", rounds: rounds,
      ours: { Double(try runToEnd(plan, on: engine).duration) / Double(packets) },
      theirs: { peer in try peer.queue(packets: packets) * 1e9 / Double(packets) })
  }

  private static func delays() throws -> [Figure] {
    let engine = Engine(catalogue: Chain.catalogue, workers: 1)
    let count = 500
    let plan = Chain(nodes: 2, packets: count, interval: interval, crosses: true, stampsNow: true).plan
    var ours: [[Double]] = []
    var theirs: [[Double]] = []
    for _ in 0..<5 {
      let bars = LatenessBars(step: 100)
      ChainSink.bars.withLock { $0 = bars }
      _ = try runToEnd(plan, on: engine)
      ours.append([bars.percentile(0.5) / 1e3, bars.percentile(0.99) / 1e3])
      guard let peer = Peers.pipeline, peer.missing == nil else { continue }
      let delays = try peer.queueDelays(packets: count, interval: interval * 1_000).sorted()
      theirs.append([delays.percentile(0.5) / 1e3, delays.percentile(0.99) / 1e3])
    }
    return ["p50", "p99"].enumerated().flatMap { index, label in
      let name = "a packet to a sleeping worker: \(label)"
      return [
        Figure("hop", name, unit: "us", samples: ours.map { $0[index] }),
        ofPeer("hop", name, unit: "us", samples: theirs.map { $0[index] }),
      ]
    }
  }
}
