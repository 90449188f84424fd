import Millrace
import Synchronization

/// A thousand live instances: what they cost, and how late packets come.
enum InstancesSuite {
  static func run() throws -> [Figure] {
    var cost: [Double] = []
    var median: [Double] = []
    var tail: [Double] = []
    for _ in 0..<3 {
      let bars = LatenessBars()
      ChainSink.bars.withLock { $0 = bars }
      let engine = Engine(catalogue: Chain.catalogue, workers: 2)
      let plan = Chain(nodes: 10, packets: 300, interval: 20_000).plan
      let runs = try (0..<1_000).map { _ in try engine.prepare(plan, observesEvents: false) }
      for run in runs { run.start() }
      // The steady state: four of the six seconds, without starts and stops.
      pause(1)
      let processor = processorSeconds()
      let start = seconds()
      pause(4)
      cost.append(100 * (processorSeconds() - processor) / (seconds() - start))
      for run in runs { _ = try finished(run) }
      median.append(bars.percentile(0.5) / 1e3)
      tail.append(bars.percentile(0.99) / 1e3)
    }
    let name = "1000 instances x 10 nodes x 50 packets/s"
    return [
      Figure("instances", "\(name): processor", unit: "% of one", goal: "<= 10", samples: cost),
      Figure("instances", "\(name): due to sink, p50", unit: "us", samples: median),
      Figure("instances", "\(name): due to sink, p99", unit: "us", goal: "<= 1000", samples: tail),
    ]
  }
}
