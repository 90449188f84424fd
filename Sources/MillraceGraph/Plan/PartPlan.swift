package import MillraceCore

/// The plan of a part: a graph with links to and from nodes that already run.
///
/// The checks see a placeholder node for every running port; the plan does not contain them.
package struct PartPlan {
  /// A running output that feeds the part.
  package struct RunningOutput {
    /// What problems call it, such as `mic` or `tee.out2`.
    package var name: String
    package var shape: OutputShape
    package var pacing: Pacing
    package var lane: Lane

    package init(name: String, shape: OutputShape, pacing: Pacing, lane: Lane) {
      self.name = name
      self.shape = shape
      self.pacing = pacing
      self.lane = lane
    }
  }

  /// A link across the boundary of the part: from a running output, or to a running input.
  package struct BoundaryLink {
    /// The end inside the part: `node` or `node.port`; empty or `.port` for the only node.
    package var inner: String
    /// The index of the running output; nil for a link to a running input.
    package var output: Int?
    /// The name of the running input, and the format it accepts.
    package var input: (name: String, format: Format)?
    package var capacity: LinkCapacity?
    package var whenFull: LinkPolicy?

    package init(from output: Int, to inner: String, capacity: LinkCapacity?, whenFull: LinkPolicy?) {
      self.inner = inner
      self.output = output
      self.capacity = capacity
      self.whenFull = whenFull
    }

    package init(
      from inner: String, to input: (name: String, format: Format), capacity: LinkCapacity?,
      whenFull: LinkPolicy?
    ) {
      self.inner = inner
      self.input = input
      self.capacity = capacity
      self.whenFull = whenFull
    }
  }

  /// The plan, without the placeholders and the boundary links.
  package let plan: GraphPlan

  /// Checks a graph together with its boundary links.
  /// - Throws: all problems of the graph and of these links, when there is at least one error.
  package init(
    _ description: GraphDescription, outputs: [RunningOutput], links: [BoundaryLink],
    settings: GraphSettings, catalogue: Catalogue
  ) throws(Problems) {
    var whole = description
    let declared = description.document.nodes.map(\.name.value)
    // Labels of placeholders, and what a user calls these ports.
    var labels: [String: String] = [:]
    // Outputs of a part may be linked later.
    var contracts = catalogue.entries.mapValues(\.contract).mapValues { contract in
      var contract = contract
      for port in contract.outputs.indices { contract.outputs[port].isRequired = false }
      // A part may name nodes of the running graph, which the checks do not see; the node itself looks for them when it starts.
      for index in contract.parameters.indices { contract.parameters[index].reference = nil }
      return contract
    }
    var placeholders: Set<String> = []
    for (index, output) in outputs.enumerated() where links.contains(where: { $0.output == index }) {
      let type = "running.output\(index)"
      contracts[type] = Self.source(type, output)
      placeholders.insert(type)
      let label = Self.label(output.name)
      labels[label] = output.name
      whole.addPlaceholder(label, type)
    }
    var names: [(from: String, to: String)] = []
    for (index, link) in links.enumerated() {
      let inner = try Self.inner(link.inner, of: declared)
      if let output = link.output {
        names.append((Self.label(outputs[output].name), inner))
      } else if let input = link.input {
        let type = "running.input\(index)"
        contracts[type] = Self.sink(type, input.format)
        placeholders.insert(type)
        // Different from the label of an output of the same node.
        let label = Self.label("->" + input.name)
        labels[label] = input.name
        whole.addPlaceholder(label, type)
        names.append((inner, label))
      }
    }
    for (link, name) in zip(links, names) {
      whole.link(from: name.from, to: name.to, capacity: link.capacity, whenFull: link.whenFull)
    }
    do throws(Problems) {
      let plan = try Graph.load(whole, settings: settings, contracts: contracts)
      self.plan = Self.withoutPlaceholders(plan, placeholders, links: links.count)
    } catch {
      throw error.replacing(labels)
    }
  }

  /// The end with the name of its node, also when that was left out because there is only one.
  private static func inner(_ end: String, of nodes: [String]) throws(Problems) -> String {
    guard end.isEmpty || end.hasPrefix(".") else { return end }
    if nodes.count == 1 { return nodes[0] + end }
    let example = nodes.first.map { ", for example by the node \(Problem.quoted($0))" } ?? ""
    throw Problems([
      Problem(
        "a link names the part, but the part has \(nodes.count) nodes", code: .unknownNode,
        hint: "write part/node\(example)")
    ])
  }

  /// The name of a placeholder: one that no node of a graph can have, and without a dot.
  private static func label(_ name: String) -> String {
    "(\(name.replacing(".", with: ":").replacing("->", with: "to:")))"
  }

  private static func source(_ type: String, _ output: RunningOutput) -> NodeContract {
    NodeContract(
      type, "a running output", outputs: [PortContract("out", .any, text: "packets of the output")],
      lane: output.lane, drive: .itself
    ) { [output] resolution in
      resolution.outputs["out"] = output.shape
      resolution.pacing = output.pacing
    }
  }

  private static func sink(_ type: String, _ format: Format) -> NodeContract {
    NodeContract(
      type, "a running input", inputs: [PortContract("in", .exactly(format), text: "packets for the input")])
  }

  /// A plan without its placeholders and the links to them, which are the last links of the plan.
  private static func withoutPlaceholders(
    _ whole: GraphPlan, _ placeholders: Set<String>, links count: Int
  ) -> GraphPlan {
    var places: [Int?] = []
    var kept = 0
    for node in whole.nodes {
      let isInside = !placeholders.contains(node.contract.type)
      places.append(isInside ? kept : nil)
      if isInside { kept += 1 }
    }
    var plan = whole
    plan.nodes = whole.nodes.enumerated().filter { places[$0.offset] != nil }.map { _, node in
      var node = node
      node.endsWith = node.endsWith.flatMap { places[$0] }
      return node
    }
    // Boundary links were added after all others, and a plan keeps the order.
    plan.links = whole.links.dropLast(count).map { link in
      var link = link
      link.from.node = places[link.from.node] ?? 0
      link.to.node = places[link.to.node] ?? 0
      return link
    }
    plan.overload = plan.overload.map { $0.renumbered(places) }
    return plan
  }
}

extension GraphDescription {
  /// Adds a node with a name that is not valid in a graph.
  fileprivate mutating func addPlaceholder(_ name: String, _ type: String) {
    let place = Place(JSONPath([.key("links")]))
    document.nodes.append(NodeDeclaration(name: Located(name, place), type: Located(type, place)))
  }
}

extension FormatConstraint {
  /// Only this format; of video, any size and rate.
  fileprivate static func exactly(_ format: Format) -> FormatConstraint {
    FormatConstraint([
      Alternative(
        format.kind, rates: format.rate.map { .only($0) } ?? .any,
        channels: format.channels.map { .only($0) } ?? .any, samples: format.sample.map { [$0] } ?? [],
        pixels: format.pixel.map { [$0] } ?? [])
    ])
  }
}

extension OverloadStep {
  /// The step with other indices of nodes, without the nodes that have none.
  fileprivate func renumbered(_ places: [Int?]) -> OverloadStep {
    var step = self
    step.shed = shed.compactMap { places[$0] }
    step.settings = settings.compactMap { setting in
      guard let node = places[setting.node] else { return nil }
      var setting = setting
      setting.node = node
      return setting
    }
    return step
  }
}
