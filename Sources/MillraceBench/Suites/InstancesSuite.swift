import Millrace
import Synchronization

/// A thousand live instances: what they cost, and how late packets come; first unobserved, then with the events of all of them
/// carried to the program.
enum InstancesSuite {
  private static let instances = 1_000
  /// Microseconds from packet to packet.
  private static let interval = 20_000
  /// Packets of an instance: six seconds.
  private static let packets = 300
  /// Packets from event to event: a second.
  private static let eventEvery = 50

  /// What one thousand instances did.
  private struct Measurement {
    /// Percent of one processor in the steady state.
    var cost: Double
    /// Microseconds from when a packet was due to when the sink had it.
    var median: Double
    var tail: Double
    /// Events that listeners got, in percent of those that were posted.
    var told: Double
  }

  static func run() throws -> [Figure] {
    var unobserved: [Measurement] = []
    var observed: [Measurement] = []
    // In turns, so that whatever else the machine does affects both.
    for _ in 0..<3 {
      unobserved.append(try measure(observesEvents: false))
      observed.append(try measure(observesEvents: true))
    }
    let name = "\(instances) instances x 10 nodes x 50 packets/s"
    return figures(name, unobserved) + figures("\(name), an event/s each observed", observed) + [
      Figure("instances", "events told", unit: "%", goal: ">= 100", samples: observed.map(\.told))
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
    let told = EventTally()
    if observesEvents { for run in runs { told.count(run.events) } }
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
      told: observesEvents ? 100 * Double(try told.ended(listeners: instances)) / Double(posted) : 0)
  }
}

/// Counts the events of sinks that arrive at the program, each run's by a task of its own.
private final class EventTally: Sendable {
  private let told = Atomic<Int>(0)
  private let ended = Atomic<Int>(0)

  func count(_ events: GraphEvents) {
    Task {
      for await event in events where event.name == "taken" { told.add(1, ordering: .relaxed) }
      ended.add(1, ordering: .releasing)
    }
  }

  /// The count when so many runs' events have come to their end, after half a minute at the latest.
  func ended(listeners: Int) throws -> Int {
    let start = seconds()
    while ended.load(ordering: .acquiring) < listeners {
      guard seconds() - start < 30 else { throw MeasurementProblem("events of some runs never ended") }
      pause(0.01)
    }
    return told.load(ordering: .relaxed)
  }
}
