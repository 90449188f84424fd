internal import MillraceCore

/// An explanation of a plan: its nodes, its links with their formats, the paths through the graph with their latencies, and its memory.
///
/// Shows no parameter values except those of overload steps, with secrets redacted.
public struct PlanExplanation: Sendable {
  private let plan: GraphPlan
  private let paths: [PlanPath]
  private let memory: PlanMemory

  /// The maximum number of paths listed as text; a wide graph has many similar ones.
  static let maxPaths = 16

  /// An explanation of a plan. Finds the paths through it.
  public init(_ plan: GraphPlan) {
    self.plan = plan
    paths = plan.paths()
    memory = PlanMemory(plan)
  }

  // MARK: Facts

  /// The lane whose workers call a node: external nodes are called on voice workers.
  private func thread(of node: Int) -> Lane { plan.nodes[node].lane == .bulk ? .bulk : .voice }

  /// `bulk → voice` when packets move between threads; otherwise empty.
  private func crossing(_ link: GraphPlan.Link) -> String {
    let (from, to) = (thread(of: link.from.node), thread(of: link.to.node))
    return from == to ? "" : "\(from.rawValue) → \(to.rawValue)"
  }

  private func time(_ value: Nanoseconds) -> String { value == 0 ? "" : Figures.duration(value) }

  // MARK: Text

  /// The explanation for a terminal.
  public func text(_ style: TerminalStyle = .plain) -> String {
    let head =
      "\(style.paint(plan.name, .heading)): \(Figures.counted(plan.nodes.count, "node")), \(Figures.counted(plan.links.count, "link")), \(plan.clock.rawValue) clock"
    var lines = [head, "", style.paint("Nodes", .bold)] + nodeTable.lines(style)
    if !plan.links.isEmpty { lines += ["", style.paint("Links", .bold)] + linkTable.lines(style) }
    if !paths.isEmpty {
      lines += ["", style.paint("Latency", .bold)] + pathTable.lines(style)
      if paths.count > Self.maxPaths {
        lines.append("  and \(paths.count - Self.maxPaths) more paths, none longer")
      }
    }
    if !plan.overload.isEmpty {
      lines += ["", style.paint("Overload", .bold)]
      lines += plan.overload.map {
        "  above \($0.above) %: \(plan.secrets.redacting(plan.describe($0)))"
      }
    }
    lines += ["", style.paint("Memory", .bold)] + memoryLines
    return lines.joined(separator: "\n") + "\n"
  }

  private var memoryLines: [String] {
    let parts = [
      (memory.blockBytes, "for blocks"), (memory.linkBytes, "for links"), (memory.nodeBytes, "for nodes"),
    ]
    .map { "\(Figures.bytes($0.0)) \($0.1)" }
    let limit = plan.memoryLimit.map { " of \(Figures.bytes($0)) allowed" } ?? ""
    var lines = [
      "  up to \(Figures.bytes(memory.byteCount))\(limit) for a run: \(Wording.joined(parts, by: "and"))"
    ]
    let largest = memory.largestClaims(of: plan)
    if !largest.isEmpty { lines.append("  largest: \(largest)") }
    return lines
  }

  /// Only the table of links.
  public func linkText(_ style: TerminalStyle = .plain) -> String {
    linkTable.lines(style).joined(separator: "\n") + "\n"
  }

  private var nodeTable: TextTable {
    var table = TextTable([
      ("node", .left), ("type", .left), ("lane", .left), ("budget", .right), ("max age", .right),
      ("latency", .right),
      ("produces", .left),
      ("ends with", .left),
      ("on error", .left),
    ])
    for node in plan.nodes {
      let isSource = node.contract.drive == .itself || !node.inputs.contains(where: \.isLinked)
      table.add([
        node.name, node.contract.type, node.lane.rawValue, node.lane == .voice ? "\(node.budget) us" : "",
        node.maxAge.map(Figures.duration) ?? "",
        time(node.latency), isSource ? node.pacing.description : "",
        node.endsWith.map { plan.nodes[$0].name } ?? "",
        node.onError == .stop ? "" : node.onError.rawValue,
      ])
    }
    return table
  }

  private var linkTable: TextTable {
    var table = TextTable([
      ("link", .left), ("format", .left), ("packet", .right), ("", .right), ("capacity", .right),
      ("", .right),
      ("when full", .left), ("threads", .left),
    ])
    let feedback = plan.feedbackLinks
    for (index, link) in plan.links.enumerated() {
      let size = link.shape.frames.map { "\($0) samples" } ?? "\(link.shape.packetBytes) B"
      table.add([
        plan.describe(link) + (feedback.contains(index) ? " (feedback)" : ""), link.shape.format.description,
        size,
        link.shape.packetDuration.map(Figures.duration) ?? "", "\(link.limit)",
        link.holdingTime.map(Figures.duration) ?? "", link.policy.rawValue, crossing(link),
      ])
    }
    return table
  }

  private var pathTable: TextTable {
    var table = TextTable([
      ("from → to", .left), ("algorithms", .right), ("longest packet", .right), ("full links add", .right),
      ("via", .left),
    ])
    for path in paths.prefix(Self.maxPaths) {
      let names = path.nodes.map { plan.nodes[$0].name }
      table.add([
        "\(names[0]) → \(names[names.count - 1])", Figures.duration(path.algorithm), time(path.packet),
        time(path.queues), names.dropFirst().dropLast().joined(separator: ", "),
      ])
    }
    return table
  }

  // MARK: JSON

  /// The explanation as JSON, with times in milliseconds.
  public func json() -> String {
    var json = JSONWriter(pretty: true)
    json.object { json in
      json.member("name", plan.name)
      json.member("clock", plan.clock.rawValue)
      json.array("nodes") { json in for node in plan.nodes { write(node, to: &json) } }
      json.array("links") { json in
        let feedback = plan.feedbackLinks
        for (index, link) in plan.links.enumerated() { write(link, feedback.contains(index), to: &json) }
      }
      json.array("paths") { json in for path in paths { write(path, to: &json) } }
      json.array("overload") { json in for step in plan.overload { write(step, to: &json) } }
      json.object("memory") { write(memory, to: &$0) }
    }
    return json.text + "\n"
  }

  private func write(_ memory: PlanMemory, to json: inout JSONWriter) {
    json.member("bytes", memory.byteCount)
    json.member("blockBytes", memory.blockBytes)
    json.member("linkBytes", memory.linkBytes)
    json.member("nodeBytes", memory.nodeBytes)
    if let limit = plan.memoryLimit { json.member("limitBytes", limit) }
    json.array("claims") { json in
      for claim in memory.claims {
        json.object { json in
          switch claim.owner {
          case .link(let index): json.member("link", plan.describe(plan.links[index]))
          case .node(let index): json.member("node", plan.nodes[index].name)
          case .events: json.member("events", true)
          }
          json.member("bytes", claim.bytes)
          json.member("packets", claim.packets)
          json.member("packetBytes", claim.packetBytes)
        }
      }
    }
  }

  private func write(_ node: GraphPlan.Node, to json: inout JSONWriter) {
    json.object { json in
      json.member("name", node.name)
      json.member("type", node.contract.type)
      json.member("lane", node.lane.rawValue)
      json.member("budgetMicroseconds", node.budget)
      if let age = node.maxAge { json.member("maxAge", Double(age) / 1e6) }
      json.member("latency", Double(node.latency) / 1e6)
      json.member("pacing", node.pacing.rawValue)
      if let other = node.endsWith { json.member("endsWith", plan.nodes[other].name) }
      json.member("onError", node.onError.rawValue)
    }
  }

  private func write(_ link: GraphPlan.Link, _ isFeedback: Bool, to json: inout JSONWriter) {
    json.object { json in
      json.member("from", plan.describe(link.from, isInput: false))
      json.member("to", plan.describe(link.to, isInput: true))
      json.member("format", link.shape.format.description)
      json.member("packetBytes", link.shape.packetBytes)
      if let frames = link.shape.frames { json.member("packetSamples", frames) }
      if let duration = link.shape.packetDuration { json.member("packetDuration", Double(duration) / 1e6) }
      json.member("capacity", link.limit)
      if let time = link.holdingTime { json.member("capacityDuration", Double(time) / 1e6) }
      json.member("whenFull", link.policy.rawValue)
      json.member("crossesThreads", !crossing(link).isEmpty)
      json.member("feedback", isFeedback)
    }
  }

  private func write(_ step: OverloadStep, to json: inout JSONWriter) {
    json.object { json in
      json.member("above", step.above)
      json.array("set") { json in
        for setting in step.settings {
          json.object { json in
            json.member("node", plan.nodes[setting.node].name)
            json.member("parameter", setting.parameter)
            json.member("value", of: shown(setting.value))
          }
        }
      }
      json.strings("shed", step.shed.map { plan.nodes[$0].name })
      json.member("refusesSessions", step.refuses)
    }
  }

  /// A value with the plan's secrets redacted.
  private func shown(_ value: ParameterValue) -> ParameterValue {
    switch value {
    case .string(let text): .string(plan.secrets.redacting(text))
    case .list(let values): .list(values.map(shown))
    default: value
    }
  }

  private func write(_ path: PlanPath, to json: inout JSONWriter) {
    json.object { json in
      json.strings("nodes", path.nodes.map { plan.nodes[$0].name })
      json.member("algorithms", Double(path.algorithm) / 1e6)
      json.member("longestPacket", Double(path.packet) / 1e6)
      json.member("fullLinks", Double(path.queues) / 1e6)
    }
  }
}

extension Pacing {
  /// How a source produces packets.
  fileprivate var description: String {
    switch self {
    case .waits: "on demand"
    case .paced: "by the clock"
    case .live: "live"
    }
  }
}
