import MillraceCore
import MillraceEngine
import MillraceGraph
import Synchronization

/// Emits empty packets: `count` of them, as fast as the graph takes or one every `interval` microseconds.
struct BenchSource: Node {
  static let contract = NodeContract(
    "bench.source", "emits empty packets", outputs: [PortContract("out", .any, text: "empty packets")],
    parameters: [
      ParameterContract("count", .integer(1...1_000_000_000), default: 1, text: "packets"),
      ParameterContract("interval", .integer(0...1_000_000), unit: "us", default: 0, text: "0: unpaced"),
    ], drive: .itself)
  let count: Int
  let interval: Nanoseconds
  var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    count = setup.parameters.integer("count")
    interval = Int64(setup.parameters.integer("interval")) * 1_000
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == count { return .ended }
    let due = Int64(next) * interval
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 8)
    packet.timestamp = due
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Hands packets on.
struct BenchPass: Node {
  static let contract = NodeContract(
    "bench.pass", "passes", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    ports.emit(packet)
    return .done
  }
}

/// Takes packets, and notes how late each is after it was due.
struct BenchSink: Node {
  static let contract = NodeContract(
    "bench.sink", "measures", inputs: [PortContract("in", .any, text: "anything")])
  /// Lateness of every packet of every sink, in steps of 10 us up to 100 ms.
  static let histogram: [Atomic10us] = (0..<10_000).map { _ in Atomic10us() }
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let late = max(0, ports.now - packet.timestamp)
      Self.histogram[Int(min(late / 10_000, 9_999))].add()
    }
    return .done
  }

  /// The lateness that a share of all packets stays under, in microseconds; clears the histogram.
  static func takePercentiles(_ shares: [Double]) -> [Double] {
    let counts = histogram.map { $0.take() }
    let total = Double(counts.reduce(0, +))
    return shares.map { share in
      var sum = 0.0
      for (index, count) in counts.enumerated() {
        sum += Double(count)
        if sum >= share * total { return Double(index + 1) * 10 }
      }
      return .nan
    }
  }
}

/// One bar of the histogram.
final class Atomic10us: Sendable {
  private let count = Atomic<Int>(0)
  func add() { count.add(1, ordering: .relaxed) }
  func take() -> Int { count.exchange(0, ordering: .relaxed) }
}

let benchCatalogue: Catalogue = {
  var catalogue = Catalogue()
  catalogue.add(BenchSource.self)
  catalogue.add(BenchPass.self)
  catalogue.add(BenchSink.self)
  return catalogue
}()

/// source -> pass × (nodes - 2) -> sink, as a checked plan made by hand.
func chainPlan(nodes: Int, count: Int, interval: Int = 0) -> GraphPlan {
  let shape = OutputShape(.text, packetDuration: .milliseconds(20), packetBytes: 64)
  func node(_ name: String, _ type: String, _ values: [String: ParameterValue], _ inputs: Int, _ outputs: Int)
    -> GraphPlan.Node
  {
    GraphPlan.Node(
      name: name, contract: benchCatalogue[type]!.contract, parameters: ParameterValues(values),
      inputs: (0..<inputs).map { _ in NodeSetup.Port(name: "in", shape: shape, isLinked: true) },
      drivingInputs: (0..<inputs).map { _ in true }, heldPackets: (0..<inputs).map { _ in 0 },
      outputs: (0..<outputs).map { _ in NodeSetup.Port(name: "out", shape: shape, isLinked: true) },
      lane: .voice,
      budget: 500, pacing: interval > 0 ? .paced : .waits)
  }
  var list = [
    node("source", "bench.source", ["count": .integer(count), "interval": .integer(interval)], 0, 1)
  ]
  for index in 0..<nodes - 2 { list.append(node("pass\(index)", "bench.pass", [:], 1, 1)) }
  list.append(node("sink", "bench.sink", [:], 1, 0))
  let links = (0..<nodes - 1).map { index in
    GraphPlan.Link(
      from: .init(node: index, port: 0), to: .init(node: index + 1, port: 0), shape: shape, limit: 8,
      policy: interval > 0 ? .dropOldest : .block)
  }
  return GraphPlan(name: "chain", nodes: list, links: links, formats: [.text])
}
