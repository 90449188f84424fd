package import MillraceCore

/// A graph whose outermost links lead to nodes that run already: it is checked with a stand-in for each of them, and planned without.
package struct OpenGraph {
  /// A running output that feeds the graph.
  package struct Inlet {
    /// What problems call the running output, such as `mic` or `tee.out2`.
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

  /// One link across the graph's edge: from a running output, or to a running input.
  package struct EdgeLink {
    /// The end inside: `node` or `node.port`.
    package var inner: String
    /// Index of the running output; nil: the link leads outside.
    package var inlet: Int?
    /// The name of the running input, and the format it takes.
    package var outer: (name: String, format: Format)?
    package var capacity: LinkCapacity?
    package var whenFull: LinkPolicy?

    package init(from inlet: Int, to inner: String, capacity: LinkCapacity?, whenFull: LinkPolicy?) {
      self.inner = inner
      self.inlet = inlet
      self.capacity = capacity
      self.whenFull = whenFull
    }

    package init(
      from inner: String, to outer: (name: String, format: Format), capacity: LinkCapacity?,
      whenFull: LinkPolicy?
    ) {
      self.inner = inner
      self.outer = outer
      self.capacity = capacity
      self.whenFull = whenFull
    }
  }

  /// The plan, without what stands outside.
  package let plan: GraphPlan
  /// For each link across the edge: its end inside, by index in the plan.
  package let ends: [GraphPlan.End]

  /// Checks a graph together with its links across the edge.
  /// - Throws: every problem of the graph, and of these links.
  package init(
    _ description: GraphDescription, inlets: [Inlet], links: [EdgeLink], settings: GraphSettings,
    catalogue: Catalogue
  ) throws(Problems) {
    var open = description
    // What the graph gives may be linked later.
    var contracts = catalogue.entries.mapValues(\.contract).mapValues { contract in
      var contract = contract
      for port in contract.outputs.indices { contract.outputs[port].isRequired = false }
      return contract
    }
    var standIns: Set<String> = []
    for (index, inlet) in inlets.enumerated() where links.contains(where: { $0.inlet == index }) {
      let type = "running.output\(index)"
      contracts[type] = Self.source(type, inlet)
      standIns.insert(type)
      open.addStandIn(Self.label(inlet.name), type)
    }
    var names: [(from: String, to: String)] = []
    for (index, link) in links.enumerated() {
      if let inlet = link.inlet {
        names.append((Self.label(inlets[inlet].name), link.inner))
      } else if let outer = link.outer {
        let type = "running.input\(index)"
        contracts[type] = Self.sink(type, outer.format)
        standIns.insert(type)
        // Not the name of an output of the same node.
        let label = Self.label("->" + outer.name)
        open.addStandIn(label, type)
        names.append((link.inner, label))
      }
    }
    for (link, name) in zip(links, names) {
      open.link(from: name.from, to: name.to, capacity: link.capacity, whenFull: link.whenFull)
    }
    let whole = try Graph.load(open, settings: settings, contracts: contracts)
    (plan, ends) = Self.opened(whole, standIns, links: links.count)
  }

  /// How a running node's port is called inside the graph: a name that no node of a graph can have, and without a dot.
  private static func label(_ name: String) -> String {
    "(\(name.replacing(".", with: ":").replacing("->", with: "to:")))"
  }

  private static func source(_ type: String, _ inlet: Inlet) -> NodeContract {
    NodeContract(
      type, "an output that runs", outputs: [PortContract("out", .any, text: "what it carries")],
      lane: inlet.lane, drive: .itself
    ) { [inlet] resolution in
      resolution.outputs["out"] = inlet.shape
      resolution.pacing = inlet.pacing
    }
  }

  private static func sink(_ type: String, _ format: Format) -> NodeContract {
    NodeContract(
      type, "an input that runs", inputs: [PortContract("in", .exactly(format), text: "what it takes")])
  }

  /// A plan without its stand-ins, and what the links to them led to, in the order these were added last.
  private static func opened(
    _ whole: GraphPlan, _ standIns: Set<String>, links count: Int
  ) -> (GraphPlan, [GraphPlan.End]) {
    var places: [Int?] = []
    var kept = 0
    for node in whole.nodes {
      let isInside = !standIns.contains(node.contract.type)
      places.append(isInside ? kept : nil)
      if isInside { kept += 1 }
    }
    var plan = whole
    plan.nodes = whole.nodes.enumerated().filter { places[$0.offset] != nil }.map { _, node in
      var node = node
      node.endsWith = node.endsWith.flatMap { places[$0] }
      return node
    }
    // The links of the edge were added behind all others, and plans keep the order.
    let inner = whole.links.prefix(whole.links.count - count)
    plan.links = inner.map { link in
      var link = link
      link.from.node = places[link.from.node] ?? 0
      link.to.node = places[link.to.node] ?? 0
      return link
    }
    let ends = whole.links.suffix(count).map { link -> GraphPlan.End in
      places[link.to.node].map { .init(node: $0, port: link.to.port) }
        ?? .init(node: places[link.from.node] ?? 0, port: link.from.port)
    }
    plan.overload = plan.overload.map { $0.renumbered(places) }
    return (plan, ends)
  }
}

/// Capacity and policy of a link to or from a graph that runs, by the rules of the links of a file.
package enum LinkTerms {
  /// The packets a link holds and what it does when it is full; what is nil is chosen by what the writer can bear and what is
  /// carried.
  package static func choose(
    capacity: LinkCapacity?, policy: LinkPolicy?, _ shape: OutputShape, pacing: Pacing
  ) -> (limit: Int, policy: LinkPolicy) {
    GraphDraft.terms(capacity: capacity, policy: policy, shape, pacing: pacing)
  }
}

extension GraphDescription {
  /// Adds a node under a name that no graph can give.
  fileprivate mutating func addStandIn(_ name: String, _ type: String) {
    let place = Place(JSONPath([.key("links")]))
    document.nodes.append(NodeDeclaration(name: Located(name, place), type: Located(type, place)))
  }
}

extension FormatConstraint {
  /// This format; of pictures any size and rate.
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
  /// The step with other indices of nodes; those without one are left out.
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
