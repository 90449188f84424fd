import MillraceCore

extension GraphDraft {
  /// The plan of a draft that passed all checks.
  func plan(warnings: [Problem]) -> GraphPlan {
    var places = Array(repeating: 0, count: nodes.count)
    for (place, node) in order.enumerated() { places[node] = place }

    let links = wired.compactMap { _, link, from, to -> GraphPlan.Link? in
      guard let shape = nodes[from.node].shape(ofOutput: from.index) else { return nil }
      let (limit, policy) = LinkDefaults.resolve(
        capacity: link.capacity?.value, policy: link.whenFull?.value, shape,
        pacing: nodes[from.node].pacing)
      return GraphPlan.Link(
        from: .init(node: places[from.node], port: from.index),
        to: .init(node: places[to.node], port: to.index),
        shape: shape, limit: limit, policy: policy)
    }
    let planned = order.compactMap { self.planned(nodes[$0]) }

    var formats: [Format] = []
    var seen: Set<Format> = []
    for format in planned.flatMap({ $0.outputs.compactMap { $0.shape?.format } })
    where seen.insert(format).inserted {
      formats.append(format)
    }
    var result = GraphPlan(name: name, clock: clock, nodes: planned, links: links, formats: formats)
    for (place, node) in order.enumerated() {
      result.nodes[place].endsWith = endsWithTarget(of: nodes[node]).map { places[$0] }
    }
    result.warnings = warnings
    result.hiddenTexts = environmentValues
    result.overload = overloadSteps(places)
    result.memoryLimit = memoryLimit?.value
    return result
  }

  private func planned(_ node: DraftNode) -> GraphPlan.Node? {
    guard let contract = node.contract, let resolution = node.resolution else { return nil }
    let inputs = node.inputs.map { port -> NodeSetup.Port in
      let from = port.links.first.flatMap { links[$0].from }
      let shape = from.flatMap { nodes[$0.node].shape(ofOutput: $0.index) }
      return NodeSetup.Port(name: port.name, shape: shape, isLinked: from != nil)
    }
    let outputs = node.outputs.map { port in
      NodeSetup.Port(name: port.name, shape: resolution.outputs[port.name], isLinked: !port.links.isEmpty)
    }
    var result = GraphPlan.Node(
      name: node.name, contract: contract, parameters: node.values, secrets: node.secrets, inputs: inputs,
      drivingInputs: node.inputs.map(\.contract.drives), heldPackets: node.inputs.map(\.contract.holds),
      outputs: outputs, lane: node.finalLane,
      budget: node.budget?.value ?? resolution.budget ?? contract.budget,
      latency: resolution.latency, pacing: node.pacing, onError: node.onError)
    result.maxAge = node.maxAge?.value
    result.origin = NodeOrigin(
      name: node.namePlace,
      parameters: Dictionary(node.arguments.map { ($0.name.value, $0.given.place) }) { first, _ in first })
    return result
  }
}
