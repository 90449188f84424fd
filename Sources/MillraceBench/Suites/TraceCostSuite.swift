import Millrace
import MillraceCore
import Synchronization

/// The cost of statistics and trace. They are always on, so a graph cannot be measured without them.
///
/// Instead the same counters and the same stores into a ring of records are executed alone, for ten cells in turn, and their time is
/// compared with a hop and with a second of the uplink; with and without reading the tick counter. The engine reads it once per
/// call, and nodes see the same reading as `Ports.now`, which they would need without statistics too. Alone, these instructions
/// overlap only with each other; how much of their cost a real hop hides is unknown.
enum TraceCostSuite {
  private static let cells = 10
  private static let rounds = 500_000
  /// Records in the engine's trace of one worker.
  private static let records = 1 << 15

  static func run() throws -> [Figure] {
    let recorder = Recorder(cells: cells, records: records)
    let engine = Engine(catalogue: Chain.catalogue, workers: 1)
    let uplink = try OneThreadUplink()
    let measured = try inTurns(
      rounds: 9,
      [
        { Self.perCall { recorder.noteCalls(rounds, readsTicks: true) } },
        { Self.perCall { recorder.noteCalls(rounds, readsTicks: false) } },
        { try HopSuite.chain(on: engine) }, { try uplink.cost() },
      ])
    let calls = Double(uplink.callsPerSecond)
    func shares(_ part: Int, of whole: Int, _ factor: Double) -> [Double] {
      zip(measured[part], measured[whole]).map { 100 * factor * $0 / $1 }
    }
    let (all, stores) = ("with the tick counter", "counters and trace")
    return [
      Figure("trace-cost", "a hop's \(stores), alone", unit: "ns", samples: measured[1]),
      Figure("trace-cost", "a hop's \(stores) \(all), alone", unit: "ns", samples: measured[0]),
      Figure("trace-cost", "share of a hop: \(stores)", unit: "%", samples: shares(1, of: 2, 1)),
      Figure("trace-cost", "share of a hop: \(all)", unit: "%", goal: "<= 5", samples: shares(0, of: 2, 1)),
      Figure(
        "trace-cost", "share of the uplink: \(all)", unit: "%", goal: "<= 1",
        samples: shares(0, of: 3, calls * 1e-6)),
    ]
  }

  private static func perCall(_ work: () -> Void) -> Double {
    let start = seconds()
    work()
    return (seconds() - start) * 1e9 / Double(rounds * cells)
  }
}

/// Counters of cells and links and a trace ring, written as the engine writes them.
@safe
private final class Recorder {
  private struct Counters: ~Copyable {
    let activations = Counter()
    let packets = Counter()
    let busyTicks = Counter()
    let worstTicks = Counter()
    let overBudget = Counter()
    let lastAge = Counter()
    let worstAge = Counter()
    let pushed = Counter()
    let popped = Counter()
    let highWater = Counter()
  }

  private let cells: Int
  private let counters: UnsafeMutablePointer<Counters>
  private let mask: Int
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  private let written = Atomic<Int>(0)
  private var next = 0

  init(cells: Int, records: Int) {
    self.cells = cells
    mask = records - 1
    unsafe counters = .allocate(capacity: cells)
    for cell in 0..<cells { unsafe (counters + cell).initialize(to: Counters()) }
    unsafe words = .allocate(capacity: 2 * records)
    for index in 0..<2 * records { unsafe (words + index).initialize(to: Atomic(0)) }
  }

  deinit {
    unsafe counters.deallocate()
    unsafe words.deallocate()
  }

  func noteCalls(_ rounds: Int, readsTicks: Bool) {
    var next = next
    var start = TickScale.now
    for _ in 0..<rounds {
      for cell in 0..<cells {
        let end = readsTicks ? TickScale.now : start &+ 100
        let ticks = end &- start
        let counters = unsafe counters + cell
        unsafe counters.pointee.activations.add()
        unsafe counters.pointee.packets.add(1)
        unsafe counters.pointee.busyTicks.add(Int(truncatingIfNeeded: ticks))
        unsafe counters.pointee.worstTicks.raise(to: Int(truncatingIfNeeded: ticks))
        if ticks > 1 << 40 { unsafe counters.pointee.overBudget.add() }
        unsafe counters.pointee.lastAge.set(Int(truncatingIfNeeded: ticks))
        unsafe counters.pointee.worstAge.raise(to: Int(truncatingIfNeeded: ticks))
        unsafe counters.pointee.pushed.add()
        unsafe counters.pointee.popped.add()
        unsafe counters.pointee.highWater.raise(to: 1)
        let slot = (next & mask) &<< 1
        unsafe words[slot].store(start, ordering: .relaxed)
        unsafe words[slot &+ 1].store(
          UInt64(cell) &<< 32 | min(ticks, UInt64(UInt32.max)), ordering: .relaxed)
        next &+= 1
        written.store(next, ordering: .releasing)
        start = end
      }
    }
    self.next = next
  }
}

/// The uplink with all nodes on one thread: milliseconds per second of audio, and the number of calls.
private final class OneThreadUplink {
  private let length = 10.0
  private let workspace: Workspace
  private let engine = Engine(catalogue: .standard, clock: .virtual, workers: 1)
  private let graph: GraphPlan
  private(set) var callsPerSecond = 0

  init() throws {
    workspace = try Workspace()
    let input = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: length, rate: 48_000), rate: 48_000, to: input)
    graph = try plan(
      UplinkSuite.graph, named: "uplink.json", set: ["input": input, "output": workspace.file("up.opus")])
  }

  func cost() throws -> Double {
    let start = processorSeconds()
    let report = try runToEnd(graph, on: engine)
    callsPerSecond = Int(Double(report.nodes.reduce(0) { $0 + $1.activations }) / length)
    return (processorSeconds() - start) * 1e3 / length
  }
}
