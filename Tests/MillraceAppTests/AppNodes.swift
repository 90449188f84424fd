import CMallocCount
import MillraceCore
import MillraceEngine
import MillraceFlow
import MillraceGraph
import Synchronization

/// Nodes between a source and a sink.
enum AppNodes {
  static let catalogue: Catalogue = {
    var catalogue = Catalogue.flow
    catalogue.add(HeapWatch.self)
    catalogue.add(Arrivals.self)
    catalogue.add(Ticker.self)
    return catalogue
  }()
}

extension GraphDescription {
  /// mic -> bot, with other nodes between.
  static func ends(
    _ source: [String: ParameterValue] = [:], _ sink: [String: ParameterValue] = [:], through: [String] = []
  ) -> GraphDescription {
    var graph = GraphDescription("ends")
    graph.add("mic", "app.source", source)
    for type in through { graph.add(type.replacing(".", with: ""), type) }
    graph.add("bot", "app.sink", sink)
    graph.link((["mic"] + through.map { $0.replacing(".", with: "") } + ["bot"]).joined(separator: " -> "))
    return graph
  }

  func prepared(_ clock: Clock.Kind = .realtime) throws -> GraphRun {
    let plan = try Graph.load(self, catalogue: AppNodes.catalogue)
    return try Engine(catalogue: AppNodes.catalogue, clock: clock, workers: 1).prepare(plan)
  }
}

extension String {
  fileprivate func replacing(_ old: Character, with new: String) -> String {
    map { $0 == old ? new : String($0) }.joined()
  }
}

extension GraphSink {
  /// All samples until the end.
  func allSamples() async -> [Int16] {
    var samples: [Int16] = []
    for await packet in packets { samples += packet.samples(of: Int16.self) }
    return samples
  }

  func all() async -> [GraphPacket] {
    var all: [GraphPacket] = []
    for await packet in packets { all.append(packet) }
    return all
  }
}

extension GraphRun {
  /// Waits for the end of the run, in a test that has no other limit.
  func ended() throws -> RunReport {
    guard let report = waitUntilStopped(timeout: .seconds(120)) else { throw NoEnd() }
    return report
  }
}

struct NoEnd: Error {}

/// Passes packets on and counts the heap requests of its thread between two of them.
struct HeapWatch: Node {
  static let contract = NodeContract(
    "test.heapWatch", "counts", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")])
  static let warmUp = 2_000
  static let watched = 10_000
  static let requests = Atomic<Int>(-1)
  var count = 0
  var first: UInt64 = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    count += 1
    if count == Self.warmUp { first = millrace_malloc_thread_requests() }
    if count == Self.warmUp + Self.watched {
      Self.requests.store(Int(millrace_malloc_thread_requests() - first), ordering: .sequentiallyConsistent)
    }
    ports.emit(packet)
    return .done
  }
}

/// Passes packets on with the time they arrived.
struct Arrivals: Node {
  static let contract = NodeContract(
    "test.arrivals", "tells when", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")])

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard var packet = ports.next() else { return .done }
    packet.timestamp = ports.now
    ports.emit(packet)
    return .done
  }
}

/// Emits a text every 10 ms, fifty in all.
struct Ticker: Node {
  static let contract = NodeContract(
    "test.ticker", "ticks", outputs: [PortContract("out", .any, text: "ticks")], drive: .itself
  ) {
    $0.outputs["out"] = OutputShape(.text, packetDuration: .milliseconds(10), packetBytes: 8)
    $0.pacing = .paced
  }
  var next: Int64 = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == 50 { return .ended }
    if ports.now >= .milliseconds(10 * next) {
      ports.emit(try ports.makePacket(bytes: 1, of: .none))
      next += 1
    }
    ports.wake(at: .milliseconds(10 * next))
    return .done
  }
}
