import MillraceCore

extension GraphDraft {
  /// Asks every node's contract for the formats of its outputs, upstream first.
  ///
  /// A node with a problem is not asked, nor one that only such nodes feed: its answer would only repeat their problems. In a cycle,
  /// inputs from downstream are unknown at first; a node is asked again when its inputs have changed, until nothing changes.
  mutating func resolveFormats() {
    let wanted = constraintsOfConsumers()
    var isDirty = nodes.indices.map { isResolvable($0) }
    // Each sweep resolves at least one more node of a cycle, so a contract that needs more sweeps than nodes does not converge.
    var sweepsLeft = nodes.count + 2
    while isDirty.contains(true), sweepsLeft > 0 {
      sweepsLeft -= 1
      for node in order where isDirty[node] {
        isDirty[node] = false
        let before = nodes[node].resolution?.outputs
        nodes[node].outcome = ask(node, wanted[node])
        let after = nodes[node].resolution?.outputs
        if before == after { continue }
        for port in nodes[node].outputs where before?[port.name] != after?[port.name] {
          for link in port.links {
            guard let to = links[link].to, isResolvable(to.node) else { continue }
            isDirty[to.node] = true
          }
        }
      }
    }
    unstableNode = order.first { isDirty[$0] }
    markConsequences()
  }

  /// For each output of each node: the formats that its consumers accept.
  private func constraintsOfConsumers() -> [[String: [FormatConstraint]]] {
    var wanted = Array(repeating: [String: [FormatConstraint]](), count: nodes.count)
    for (_, _, from, to) in wired {
      let port = nodes[from.node].outputs[from.index].name
      wanted[from.node][port, default: []].append(nodes[to.node].inputs[to.index].contract.formats)
    }
    return wanted
  }

  /// True when nothing is wrong with the node itself.
  func isResolvable(_ index: Int) -> Bool {
    let node = nodes[index]
    guard let contract = node.contract, !node.hasUnknownValues, node.mismatches.isEmpty else { return false }
    let isComplete = contract.parameters.allSatisfy { !$0.isRequired || node.values.has($0.name) }
    return isComplete && node.lackingInputs.isEmpty && node.inputs.allSatisfy { $0.links.count <= 1 }
  }

  private func ask(_ index: Int, _ wanted: [String: [FormatConstraint]]) -> ResolutionOutcome {
    let node = nodes[index]
    guard let contract = node.contract else { return .untried }
    var inputs: [String: OutputShape] = [:]
    var linked: [String] = []
    for port in node.inputs {
      guard let link = port.links.first else { continue }
      linked.append(port.name)
      guard let from = links[link].from, let shape = nodes[from.node].shape(ofOutput: from.index) else {
        continue
      }
      inputs[port.name] = arriving(shape, at: port.contract)
    }
    var resolution = Resolution(
      node: node.name, parameters: node.values, inputs: inputs, linkedInputs: linked, wanted: wanted)
    contract.resolve(&resolution)
    if !resolution.problems.isEmpty { return .refused(resolution.problems) }
    if contract.outputs.contains(where: { $0.name == NodeContract.eventsPort }),
      resolution.outputs[NodeContract.eventsPort] == nil
    {
      resolution.outputs[NodeContract.eventsPort] = .events
    }
    return .resolved(resolution)
  }

  /// The shape that a contract is asked about. `FormatMismatch` reports a link that does not fit; the contract is asked as if the
  /// link were converted, to find its other problems. nil when no conversion is known: a contract need not handle formats it does not
  /// accept.
  private func arriving(_ shape: OutputShape, at port: PortContract) -> OutputShape? {
    port.formats.accepts(shape.format)
      ? shape : FormatConversion(shape.format, port.formats)?.converted(shape)
  }

  /// Marks the nodes whose rejections or missing formats follow from a problem upstream.
  private mutating func markConsequences() {
    var hasFailed = Array(repeating: false, count: nodes.count)
    for index in order {
      switch nodes[index].outcome {
      case .untried, .tainted: hasFailed[index] = true
      case .refused, .resolved:
        let isFed = nodes[index].inputs.contains { port in
          port.links.contains { link in
            guard let from = links[link].from else { return true }
            guard let shape = nodes[from.node].shape(ofOutput: from.index) else {
              return hasFailed[from.node]
            }
            return arriving(shape, at: port.contract) == nil
          }
        }
        if case .refused = nodes[index].outcome {
          if isFed { nodes[index].outcome = .tainted }
          hasFailed[index] = true
        } else if isFed, nodes[index].outputs.contains(where: { isUndetermined($0, of: index) }) {
          nodes[index].outcome = .tainted
          hasFailed[index] = true
        } else {
          hasFailed[index] = nodes[index].outputs.contains { isUndetermined($0, of: index) }
        }
      }
    }
  }

  /// True when a linked output has no format.
  func isUndetermined(_ port: DraftPort, of node: Int) -> Bool {
    !port.links.isEmpty && nodes[node].resolution?.outputs[port.name] == nil
  }

  /// True unless a link is known to carry a format that its input does not accept.
  func accepts(_ link: Int) -> Bool {
    guard let from = links[link].from, let to = links[link].to,
      let shape = nodes[from.node].shape(ofOutput: from.index)
    else { return true }
    return nodes[to.node].inputs[to.index].contract.formats.accepts(shape.format)
  }
}

extension OutputShape {
  /// The shape of a node's `events` port when its contract does not set one: a few events a call.
  static let events = OutputShape(
    .event, packetDuration: nil, packetBytes: EventWriter.eventBytes, burst: 4)
}
