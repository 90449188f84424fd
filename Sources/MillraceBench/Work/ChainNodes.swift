import MillraceCore
import MillraceEngine
import MillraceGraph
import Synchronization

/// Emits `count` empty packets, as fast as the graph takes them or one every `interval` microseconds.
struct ChainSource: Node {
  static let contract = NodeContract(
    "bench.source", "emits empty packets", outputs: [PortContract("out", .any, text: "empty packets")],
    parameters: [
      ParameterContract("count", .integer(1...1_000_000_000), default: 1, text: "packets"),
      ParameterContract("interval", .integer(0...1_000_000), unit: "us", default: 0, text: "0: unpaced"),
      ParameterContract(
        "stampsNow", .bool, default: false,
        text: "timestamps are the time of the call, not the time it was due"),
    ], drive: .itself)
  private let count: Int
  private let interval: Nanoseconds
  private let stampsNow: Bool
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    count = setup.parameters.integer("count")
    interval = Int64(setup.parameters.integer("interval")) * 1_000
    stampsNow = setup.parameters.bool("stampsNow")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == count { return .ended }
    let due = Int64(next) * interval
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 8, of: .none)
    packet.timestamp = stampsNow ? ports.now : due
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Passes packets on.
struct ChainPass: Node {
  static let contract = NodeContract(
    "bench.pass", "passes packets on", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")])

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    ports.emit(packet)
    return .done
  }
}

/// Takes packets and records how long after its timestamp each one arrived.
struct ChainSink: Node {
  static let contract = NodeContract(
    "bench.sink", "measures lateness", inputs: [PortContract("in", .any, text: "anything")])
  /// The histogram of sinks created from now on.
  static let bars = Mutex(LatenessBars())
  private let bars = Self.bars.withLock { $0 }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { bars.add(Int(ports.now - packet.timestamp)) }
    return .done
  }
}

/// As `ChainSink`, and posts an event every so many packets.
struct ChainEventSink: Node {
  static let contract = NodeContract(
    "bench.eventSink", "measures lateness and posts events",
    inputs: [PortContract("in", .any, text: "anything")],
    parameters: [
      ParameterContract("every", .integer(1...1_000_000), default: 50, text: "packets per event")
    ], events: [EventContract("taken", text: "`packets` taken so far")])
  private let every: Int
  private let bars = ChainSink.bars.withLock { $0 }
  private var taken = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { every = setup.parameters.integer("every") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      bars.add(Int(ports.now - packet.timestamp))
      taken += 1
      if taken % every == 0 {
        let taken = taken
        ports.post(0) { $0.field("packets", taken) }
      }
    }
    return .done
  }
}

/// source -> pass x (nodes - 2) -> sink, as a plan built in code.
struct Chain {
  var nodes: Int
  var packets: Int
  /// Microseconds between packets; 0: as fast as they are taken.
  var interval = 0
  /// Packets a link holds.
  var limit = 8
  /// The sink runs on another worker.
  var crosses = false
  /// Timestamps are the time at which packets were emitted.
  var stampsNow = false
  /// Packets per event of the sink; nil: no events.
  var eventEvery: Int?

  static let catalogue: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(ChainSource.self)
    catalogue.add(ChainPass.self)
    catalogue.add(ChainSink.self)
    catalogue.add(ChainEventSink.self)
    catalogue.add(ReplySource.self)
    catalogue.add(ReplySink.self)
    return catalogue
  }()

  var plan: GraphPlan {
    let values: [String: ParameterValue] = [
      "count": .integer(packets), "interval": .integer(interval), "stampsNow": .bool(stampsNow),
    ]
    let last: (contract: NodeContract, values: [String: ParameterValue]) =
      eventEvery.map { (ChainEventSink.contract, ["every": .integer($0)]) } ?? (ChainSink.contract, [:])
    return Self.plan(
      first: (ChainSource.contract, values), passes: nodes - 2, last: last, limit: limit,
      policy: interval > 0 ? .dropOldest : .block
    ) { crosses && $0 == nodes - 1 ? .bulk : .voice }
  }

  /// A chain of any first and last node with `ChainPass` nodes between them.
  static func plan(
    first: (contract: NodeContract, values: [String: ParameterValue]), passes: Int,
    last: (contract: NodeContract, values: [String: ParameterValue]), limit: Int, policy: LinkPolicy,
    lane: (Int) -> Lane
  ) -> GraphPlan {
    let shape = OutputShape(.text, packetDuration: .milliseconds(20), packetBytes: 64)
    var nodes: [GraphPlan.Node] = []
    func add(_ name: String, _ contract: NodeContract, _ values: [String: ParameterValue] = [:]) {
      let inputs = contract.inputs.isEmpty ? 0 : 1
      nodes.append(
        GraphPlan.Node(
          name: name, contract: contract, parameters: ParameterValues(values),
          inputs: (0..<inputs).map { _ in NodeSetup.Port(name: "in", shape: shape, isLinked: true) },
          drivingInputs: (0..<inputs).map { _ in true }, heldPackets: (0..<inputs).map { _ in 0 },
          outputs: contract.outputs.map { output in
            output.name == NodeContract.eventsPort
              ? NodeSetup.Port(name: output.name, shape: nil, isLinked: false)
              : NodeSetup.Port(name: "out", shape: shape, isLinked: true)
          },
          lane: lane(nodes.count), budget: 500, pacing: policy == .block ? .waits : .paced))
    }
    add("source", first.contract, first.values)
    for index in 0..<passes { add("pass\(index)", ChainPass.contract) }
    add("sink", last.contract, last.values)
    let links = (0..<nodes.count - 1).map { index in
      GraphPlan.Link(
        from: .init(node: index, port: 0), to: .init(node: index + 1, port: 0), shape: shape, limit: limit,
        policy: policy)
    }
    return GraphPlan(name: "chain", nodes: nodes, links: links, formats: [.text])
  }
}
