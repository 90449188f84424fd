import CMallocCount
import MillraceCore
import MillraceGraph
import Synchronization
import Testing

@testable import MillraceEngine

/// As `CountSource`; records the thread's heap requests at the beginning and end of the steady state.
struct HeapWatchingSource: Node {
  static let contract = NodeContract(
    "test.heapWatch", "counts", outputs: [PortContract("out", .any, text: "numbers")],
    parameters: [
      ParameterContract("interval", .integer(0...1_000), unit: "ms", default: 0, text: "0: unpaced")
    ],
    drive: .itself
  ) { $0.outputs["out"] = testShape }
  static let warmUp = 2_000
  static let watched = 10_000
  /// Heap requests in the steady state; -1 until it is over.
  static let requests = Atomic<Int>(-1)

  let interval: Nanoseconds
  var next = 0
  var first: UInt64 = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    interval = .milliseconds(Int64(setup.parameters.integer("interval")))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == Self.warmUp { first = millrace_malloc_thread_requests() }
    if next == Self.warmUp + Self.watched {
      Self.requests.store(Int(millrace_malloc_thread_requests() - first), ordering: .relaxed)
      return .ended
    }
    let due = Int64(next) * interval
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 4, of: .none)
    var content = packet.mutableSamples(of: Int32.self)
    content[0] = Int32(next)
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Takes packets and discards them.
struct SilentSink: Node {
  static let contract = NodeContract(
    "test.silent", "discards", inputs: [PortContract("in", .any, text: "anything")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    _ = ports.next()
    return .done
  }
}

@Suite("The engine's heap", .serialized, .timeLimit(.minutes(30)))
struct HeapTests {
  @Test(
    "asks the heap for nothing in the steady state: calls, hops, timers, fan-out, a tap",
    .enabled(if: millrace_malloc_counting_available() != 0, "the sanitizers have the heap to themselves"),
    arguments: [0, 1])
  func steadyState(interval: Int) throws {
    HeapWatchingSource.requests.store(-1, ordering: .relaxed)
    var builder = PlanBuilder()
    let source = builder.add("source", "test.heapWatch", ["interval": .integer(interval)])
    var last = source
    for index in 0..<8 {
      let pass = builder.add("pass\(index)", "test.pass")
      builder.link(last, pass, policy: .dropOldest)
      last = pass
    }
    let sink = builder.add("sink", "test.silent")
    let second = builder.add("second", "test.silent")
    builder.link(last, sink, policy: .dropOldest)
    builder.link(source, second, policy: .latest)
    let engine = Engine(catalogue: testCatalogue, clock: interval == 0 ? .realtime : .virtual, workers: 1)
    let run = try engine.prepare(builder.plan)
    let tap = run.tap(0)
    run.start()
    while !tap.isOver { while tap.next() != nil {} }
    let report = try #require(run.waitUntilStopped(timeout: .seconds(60)))
    #expect(report.failure == nil)
    #expect(HeapWatchingSource.requests.load(ordering: .relaxed) == 0)
  }
}
