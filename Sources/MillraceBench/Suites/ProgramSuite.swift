import CMillraceSys
import Millrace
import MillraceCore
import Synchronization

/// What it costs a program to send audio into graphs and to receive it: a thousand live sessions with a packet every 20 ms, next to the
/// same graphs with nodes that emit and take the packets themselves.
///
/// Measured is processor time of the whole process per packet, over two seconds. One thread of the program sends for all sessions,
/// 50 of them every millisecond. Packets are received by polling, or by one task per session that waits for them.
enum ProgramSuite {
  private static let rounds = 3
  private static let warmUp = 1.0
  private static let length = 2.0

  static func run() throws -> [Figure] {
    let measured = try inTurns(
      rounds: rounds, [own, { try program(waits: false) }, { try program(waits: true) }])
    let name = "\(ProgramLoad.sessions) sessions x 50 packets/s"
    func above(_ samples: [Double]) -> [Double] { zip(samples, measured[0]).map { $0 - $1 } }
    return [
      Figure("program", "\(name): custom nodes", unit: "ns/packet", samples: measured[0]),
      Figure("program", "\(name): source and sink", unit: "ns/packet", samples: measured[1]),
      Figure(
        "program", "source and sink, above custom nodes", unit: "ns/packet", goal: "<= 1000",
        samples: above(measured[1])),
      Figure("program", "\(name): source, and a task per sink", unit: "ns/packet", samples: measured[2]),
      Figure(
        "program", "source, and a task per sink, above custom nodes", unit: "ns/packet",
        samples: above(measured[2])),
    ]
  }

  /// Nanoseconds of processor time per packet that `count` counts.
  private static func cost(_ count: () -> Int) -> Double {
    pause(warmUp)
    let (processor, packets) = (processorSeconds(), count())
    pause(length)
    return 1e9 * (processorSeconds() - processor) / Double(max(1, count() - packets))
  }

  private static func own() throws -> Double {
    let engine = Engine(catalogue: ProgramLoad.catalogue, workers: 1)
    let plan = try ProgramLoad.plan("bench.ownSource", ["packets": 1_000_000], "bench.ownSink")
    let runs = try (0..<ProgramLoad.sessions).map { _ in try engine.start(plan, observesEvents: false) }
    let cost = cost { OwnSink.taken.load(ordering: .relaxed) }
    try end(runs)
    return cost
  }

  private static func program(waits: Bool) throws -> Double {
    let engine = Engine(catalogue: ProgramLoad.catalogue, workers: 1)
    let plan = try ProgramLoad.plan("app.source", ["pacing": "live"], "app.sink")
    let runs = try (0..<ProgramLoad.sessions).map { _ in try engine.prepare(plan, observesEvents: false) }
    let program = Program(
      sources: try runs.map { try $0.source("mic") }, sinks: try runs.map { try $0.sink("bot") }, waits: waits
    )
    for run in runs { run.start() }
    program.start()
    let cost = cost { program.taken.load(ordering: .relaxed) }
    program.stop()
    try end(runs)
    let dropped = program.droppedCount
    guard dropped == 0 else { throw MeasurementProblem("\(dropped) packets of the program were dropped") }
    return cost
  }

  private static func end(_ runs: [GraphRun]) throws {
    for run in runs { run.stop() }
    for run in runs { _ = try finished(run) }
  }
}

/// The program: a thread that sends, and that polls unless tasks receive.
private final class Program: Sendable {
  let taken = Atomic<Int>(0)
  private let sources: [GraphSource]
  private let sinks: [GraphSink]
  private let waits: Bool
  private let isStopping = Atomic<Bool>(false)
  private let isOver = Futex()

  init(sources: [GraphSource], sinks: [GraphSink], waits: Bool) {
    self.sources = sources
    self.sinks = sinks
    self.waits = waits
  }

  var droppedCount: Int {
    sources.reduce(0) { $0 + $1.droppedCount } + sinks.reduce(0) { $0 + $1.droppedCount }
  }

  func start() {
    if waits {
      for sink in sinks {
        Task { for await packet in sink.packets { note(packet) } }
      }
    }
    _ = DetachedThread.start("bench-program") { [self] in
      work()
      isOver.store(1)
      isOver.wake()
    }
  }

  func stop() {
    isStopping.store(true, ordering: .releasing)
    while isOver.load() == 0 { isOver.wait(while: 0) }
  }

  private func note(_ packet: GraphPacket) {
    use(packet.bytes.count)
    taken.add(1, ordering: .relaxed)
  }

  private func work() {
    let start = millrace_monotonic_ns()
    var millisecond = 0
    while !isStopping.load(ordering: .acquiring) {
      for session in ProgramLoad.sessions(in: millisecond) {
        if !waits { while let packet = sinks[session].tryNext() { note(packet) } }
        _ = try? sources[session].trySend(ProgramLoad.frame)
      }
      millisecond += 1
      sleep(until: start + Int64(millisecond) * 1_000_000)
    }
  }
}
