import Glibc
import MillraceCore
import MillraceEngine
import MillraceGraph

/// What the engine adds: the cost of a hop, with statistics and trace on as always.
enum HopSuite {
  static func run() -> [Figure] {
    let engine = Engine(catalogue: benchCatalogue, workers: 1)
    let packets = 200_000
    var samples: [Double] = []
    for round in 0..<11 {
      guard let run = try? engine.start(chainPlan(nodes: 10, count: packets), observesEvents: false),
        let report = run.waitUntilStopped()
      else { continue }
      _ = BenchSink.takePercentiles([])
      let calls = report.nodes.reduce(0) { $0 + $1.activations }
      // The first round warms caches and the pool depot up.
      if round > 0 { samples.append(Double(report.duration) / Double(calls)) }
    }
    return [
      Figure(
        "hop", "one call and hop, 10-node chain, one worker, traced", unit: "ns", goal: "<= 60",
        samples: samples)
    ]
  }
}

/// A thousand live instances: what they cost, and how late packets come.
enum InstancesSuite {
  static func run() -> [Figure] {
    var cost: [Double] = []
    var median: [Double] = []
    var tail: [Double] = []
    for _ in 0..<3 {
      let engine = Engine(catalogue: benchCatalogue, workers: 2)
      let plan = chainPlan(nodes: 10, count: 300, interval: 20_000)
      let runs = (0..<1_000).compactMap { _ in try? engine.prepare(plan, observesEvents: false) }
      for run in runs { run.start() }
      // The steady state: four of the six seconds, without starts and stops.
      sleep(1)
      let processor = processorSeconds()
      let start = seconds()
      sleep(4)
      cost.append(100 * (processorSeconds() - processor) / (seconds() - start))
      for run in runs { _ = run.waitUntilStopped() }
      let late = BenchSink.takePercentiles([0.5, 0.99])
      median.append(late[0])
      tail.append(late[1])
    }
    let name = "1000 instances x 10 nodes x 50 packets/s"
    return [
      Figure("instances", "\(name): processor", unit: "% of one", goal: "<= 10", samples: cost),
      Figure("instances", "\(name): due to sink, p50", unit: "us", samples: median),
      Figure("instances", "\(name): due to sink, p99", unit: "us", goal: "<= 1000", samples: tail),
    ]
  }
}
