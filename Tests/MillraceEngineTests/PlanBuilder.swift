import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

/// Builds plans directly, without the checks: the engine's tests depend only on the engine.
struct PlanBuilder {
  var plan = GraphPlan(name: "test", nodes: [], links: [], formats: [.text, .event])

  @discardableResult
  mutating func add(
    _ name: String, _ type: String, _ values: [String: ParameterValue] = [:], lane: Lane? = nil,
    onError: ErrorPolicy = .stop, secrets: Set<String> = []
  ) -> Int {
    let contract = testCatalogue[type]!.contract
    var parameters = ParameterValues()
    for parameter in contract.parameters { parameters[parameter.name] = parameter.defaultValue }
    for (name, value) in values { parameters[name] = value }
    var resolution = Resolution(
      node: name, parameters: parameters, inputs: [:], linkedInputs: [], wanted: [:])
    contract.resolve(&resolution)
    plan.nodes.append(
      GraphPlan.Node(
        name: name, contract: contract, parameters: parameters, secrets: secrets,
        inputs: contract.inputs.map { NodeSetup.Port(name: $0.name, shape: testShape, isLinked: false) },
        drivingInputs: contract.inputs.map(\.drives), heldPackets: contract.inputs.map(\.holds),
        outputs: contract.outputs.map {
          let shape =
            $0.name == NodeContract.eventsPort
            ? resolution.outputs[$0.name]
              ?? OutputShape(.event, packetDuration: nil, packetBytes: EventWriter.eventBytes) : testShape
          return NodeSetup.Port(name: $0.name, shape: shape, isLinked: false)
        }, lane: lane ?? contract.lane, budget: contract.budget, pacing: resolution.pacing, onError: onError))
    return plan.nodes.count - 1
  }

  mutating func link(
    _ from: Int, _ to: Int, limit: Int = 8, policy: LinkPolicy = .block, port: Int = 0, output: Int = 0,
    burst: Int? = nil
  ) {
    let given = plan.nodes[from].outputs[output]
    var shape = given.shape!
    if let burst { shape.burst = burst }
    plan.links.append(
      GraphPlan.Link(
        from: .init(node: from, port: output), to: .init(node: to, port: port), shape: shape, limit: limit,
        policy: policy))
    plan.nodes[from].outputs[output] = .init(name: given.name, shape: shape, isLinked: true)
    plan.nodes[to].inputs[port] = .init(name: "in", shape: shape, isLinked: true)
  }

  /// source -> pass × count -> sink
  static func chain(
    source: [String: ParameterValue], passes: Int, probe: String, sinkLane: Lane? = nil,
    policy: LinkPolicy = .block, limit: Int = 8
  ) -> GraphPlan {
    var builder = PlanBuilder()
    var last = builder.add("source", "test.count", source)
    for index in 0..<passes {
      let pass = builder.add("pass\(index)", "test.pass", ["probe": .string(probe)])
      builder.link(last, pass, limit: limit, policy: policy)
      last = pass
    }
    let sink = builder.add("sink", "test.collect", ["probe": .string(probe)], lane: sinkLane)
    builder.link(last, sink, limit: limit, policy: policy)
    return builder.plan
  }

  /// source -> a node -> sink
  static func through(
    _ type: String, _ values: [String: ParameterValue] = [:], named name: String = "middle",
    onError: ErrorPolicy = .stop, source: [String: ParameterValue], sourceLane: Lane? = nil, probe: String
  ) -> GraphPlan {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", source, lane: sourceLane)
    let middle = builder.add(name, type, values, onError: onError)
    let sink = builder.add("sink", "test.collect", ["probe": .string(probe)])
    builder.link(source, middle)
    builder.link(middle, sink)
    return builder.plan
  }
}

extension GraphPlan {
  /// Runs the plan to its end, on a new engine with one worker.
  @discardableResult
  func runToEnd(_ clock: Clock.Kind = .realtime) throws -> RunReport {
    try runToEnd(on: Engine(catalogue: testCatalogue, clock: clock, workers: 1))
  }

  /// Runs the plan to its end.
  @discardableResult
  func runToEnd(on engine: Engine) throws -> RunReport {
    let run = try engine.start(self)
    return try #require(run.waitUntilStopped(timeout: .seconds(120)), "the run does not end")
  }
}
