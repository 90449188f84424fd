import MillraceCore

extension GraphDraft {
  /// Asks every node's contract what its outputs will carry, upstream first.
  ///
  /// Nodes that are wrong themselves are not asked, nor are those that only wrong nodes feed: their answers would be wrong for
  /// a reason told already. In a cycle the inputs from downstream are unknown at first; nodes whose inputs have changed are
  /// asked again until nothing changes.
  mutating func resolveFormats() {
    let wanted = constraintsOfConsumers()
    var isDirty = nodes.indices.map { isResolvable($0) }
    // Each sweep decides at least one more node of a cycle, so more sweeps than nodes mean that a contract does not settle.
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
    unsettled = order.first { isDirty[$0] }
    forgetConsequences()
  }

  /// What the consumers of each node's outputs accept.
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

  /// What a port is said to get. A link that does not fit is told as such, and the node is asked as if it were mended, to find
  /// what else is wrong; nil when nothing mends it, for a contract need not understand what it does not accept.
  private func arriving(_ shape: OutputShape, at port: PortContract) -> OutputShape? {
    port.formats.accepts(shape.format) ? shape : Mending(shape.format, port.formats)?.mended(shape)
  }

  /// Marks the nodes whose objections, or missing answers, follow from something upstream.
  private mutating func forgetConsequences() {
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
        } else if isFed, nodes[index].outputs.contains(where: { isUndecided($0, of: index) }) {
          nodes[index].outcome = .tainted
          hasFailed[index] = true
        } else {
          hasFailed[index] = nodes[index].outputs.contains { isUndecided($0, of: index) }
        }
      }
    }
  }

  /// True when a linked output has got no format.
  func isUndecided(_ port: DraftPort, of node: Int) -> Bool {
    !port.links.isEmpty && nodes[node].resolution?.outputs[port.name] == nil
  }

  /// True unless a link is known to carry what its reader does not take.
  func accepts(_ link: Int) -> Bool {
    guard let from = links[link].from, let to = links[link].to,
      let shape = nodes[from.node].shape(ofOutput: from.index)
    else { return true }
    return nodes[to.node].inputs[to.index].contract.formats.accepts(shape.format)
  }
}

extension OutputShape {
  /// What a node's `events` port carries when its contract says nothing: a few events a call.
  static let events = OutputShape(
    .event, packetDuration: nil, packetBytes: EventWriter.eventBytes, burst: 4)
}
