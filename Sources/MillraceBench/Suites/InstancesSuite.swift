import Millrace
import Synchronization

/// A thousand live instances: their cost, and how late packets are; first without observers, then with the events of all of them
/// delivered to the program.
enum InstancesSuite {
  private static let instances = 1_000
  /// Microseconds between packets.
  private static let interval = 20_000
  /// Packets per instance: six seconds.
  private static let packets = 300
  /// Packets per event: one second.
  private static let eventEvery = 50

  /// The result for a thousand instances.
  private struct Measurement {
    /// Percent of one processor in the steady state.
    var cost: Double
    /// Microseconds from the time a packet was due to its arrival at the sink.
    var median: Double
    var tail: Double
    /// Events that were delivered, in percent of those posted.
    var delivered: Double
  }

  static func run() throws -> [Figure] {
    var unobserved: [Measurement] = []
    var observed: [Measurement] = []
    // In turns, so that other load on the machine affects both.
    for _ in 0..<3 {
      unobserved.append(try measure(observesEvents: false))
      observed.append(try measure(observesEvents: true))
    }
    let name = "\(instances) instances x 10 nodes x 50 packets/s"
    return figures(name, unobserved) + figures("\(name), an event/s each observed", observed) + [
      Figure("instances", "events delivered", unit: "%", goal: ">= 100", samples: observed.map(\.delivered))
    ]
  }

  private static func figures(_ name: String, _ done: [Measurement]) -> [Figure] {
    [
      Figure("instances", "\(name): processor", unit: "% of one", goal: "<= 10", samples: done.map(\.cost)),
      Figure("instances", "\(name): due to sink, p50", unit: "us", samples: done.map(\.median)),
      Figure(
        "instances", "\(name): due to sink, p99", unit: "us", goal: "<= 1000", samples: done.map(\.tail)),
    ]
  }

  private static func measure(observesEvents: Bool) throws -> Measurement {
    let bars = LatenessBars()
    ChainSink.bars.withLock { $0 = bars }
    let engine = Engine(catalogue: Chain.catalogue, workers: 2)
    let chain = Chain(
      nodes: 10, packets: packets, interval: interval, eventEvery: observesEvents ? eventEvery : nil)
    let plan = chain.plan
    let runs = try (0..<instances).map { _ in try engine.prepare(plan, observesEvents: observesEvents) }
    let tally = EventTally()
    if observesEvents { for run in runs { tally.count(run.events) } }
    for run in runs { run.start() }
    // The steady state: four of the six seconds, without starts and stops.
    pause(1)
    let processor = processorSeconds()
    let start = seconds()
    pause(4)
    let cost = 100 * (processorSeconds() - processor) / (seconds() - start)
    for run in runs { _ = try finished(run) }
    let posted = instances * (packets / eventEvery)
    return Measurement(
      cost: cost, median: bars.percentile(0.5) / 1e3, tail: bars.percentile(0.99) / 1e3,
      delivered: observesEvents ? 100 * Double(try tally.ended(listeners: instances)) / Double(posted) : 0)
  }
}

/// Counts the sinks' events that reach the program, with one task per run.
private final class EventTally: Sendable {
  private let delivered = Atomic<Int>(0)
  private let ended = Atomic<Int>(0)

  func count(_ events: GraphEvents) {
    Task {
      for await event in events where event.name == "taken" { delivered.add(1, ordering: .relaxed) }
      ended.add(1, ordering: .releasing)
    }
  }

  /// The count once the events of all runs have ended; waits at most 30 s.
  func ended(listeners: Int) throws -> Int {
    let start = seconds()
    while ended.load(ordering: .acquiring) < listeners {
      guard seconds() - start < 30 else {
        throw MeasurementProblem("the events of some runs did not end within 30 s")
      }
      pause(0.01)
    }
    return delivered.load(ordering: .relaxed)
  }
}
