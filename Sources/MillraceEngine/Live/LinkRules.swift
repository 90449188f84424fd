internal import MillraceCore
internal import MillraceGraph

/// The rules for links to or from running nodes.
enum LinkRules {
  /// What the link will carry; checks both ends.
  static func shape(_ from: LiveEnd, _ to: LiveEnd, on core: EngineCore) throws(EditProblem) -> OutputShape {
    try checkLife(of: from)
    try checkLife(of: to)
    guard from.run.engine === core && to.run.engine === core else {
      throw EditProblem(
        .otherEngine, "the two runs belong to different engines", cure: "start both on one engine")
    }
    guard core.clock == .realtime || from.run.voiceWorker === to.run.voiceWorker else {
      throw EditProblem(
        .otherClock, "the two runs have different virtual clocks, each on its own worker",
        cure: "create the engine with one worker")
    }
    let shape = try self.shape(ofOutput: from)
    let taken = try self.shape(ofInput: to)
    let (output, input) = (from.described(isInput: false), to.described(isInput: true))
    guard shape.format == taken.format else {
      throw EditProblem(
        .otherFormat,
        "\(Problem.quoted(output)) carries \(shape.format) but \(Problem.quoted(input)) was created for \(taken.format)",
        cure: "add a part that converts it")
    }
    guard shape.packetBytes <= taken.packetBytes else {
      throw EditProblem(
        .otherFormat,
        "\(Problem.quoted(output)) carries packets of up to \(shape.packetBytes) bytes but \(Problem.quoted(input)) was created for \(taken.packetBytes)",
        cure: "add a part that makes the packets smaller")
    }
    return shape
  }

  private static func shape(ofOutput from: LiveEnd) throws(EditProblem) -> OutputShape {
    let port = from.node.outputs[from.end.port]
    let name = Problem.quoted(from.described(isInput: false))
    guard let shape = port.shape else {
      throw EditProblem(.nothingCarried, "\(name) carries nothing", cure: "link it in the graph")
    }
    let isUnheard = port.name == NodeContract.eventsPort && !port.isLinked && !from.run.hasOutbox
    if isUnheard {
      throw EditProblem(
        .nothingCarried, "\(name) carries nothing: the run was prepared without events",
        cure: "prepare it with observesEvents")
    }
    return shape
  }

  private static func shape(ofInput to: LiveEnd) throws(EditProblem) -> OutputShape {
    let port = to.node.inputs[to.end.port]
    guard port.isLinked, let shape = port.shape else {
      throw EditProblem(
        .unlinkedInput,
        "\(Problem.quoted(to.described(isInput: true))) was not linked when its node was created, so the node does not read it",
        cure: "link it in the graph, for example to a silent source, or add the node again as a part")
    }
    return shape
  }

  /// Throws when the node or its run has ended or not started.
  static func checkLife(of end: LiveEnd) throws(EditProblem) {
    let run = end.run
    try checkLife(ofRun: run)
    guard !run.mailboxes[end.end.node].isClosed else {
      throw EditProblem(
        .ended, "node \(Problem.quoted(run.path + end.node.name)) has ended", cure: "add it again as a part")
    }
  }

  /// Throws when a run has ended or not started.
  static func checkLife(ofRun run: GraphRun) throws(EditProblem) {
    if run.isUnstarted && run.parent != nil { return }
    let what = run.parent == nil ? "the run" : "part \(Problem.quoted(String(run.path.dropLast())))"
    switch run.phase {
    case .running: break
    case .prepared:
      throw EditProblem(.notStarted, "\(what) has not been started", cure: "call start() first")
    case .draining, .stopping:
      throw EditProblem(.ended, "\(what) is ending", cure: "change it before it drains or stops")
    case .stopped: throw EditProblem(.ended, "\(what) has ended", cure: "start another one")
    }
  }

  /// Capacity and policy.
  static func terms(
    _ from: LiveEnd, _ shape: OutputShape, _ capacity: LinkCapacity?, _ policy: LinkPolicy?, _ name: String
  ) throws(EditProblem) -> (limit: Int, policy: LinkPolicy) {
    let pacing = from.node.pacing
    if policy == .block && pacing == .live {
      throw EditProblem(
        .badTerms, "link \(Problem.quoted(name)) cannot block: its source cannot wait",
        cure: "use \"dropOldest\"")
    }
    let terms = LinkDefaults.resolve(capacity: capacity, policy: policy, shape, pacing: pacing)
    guard LinkCapacity.packetRange.contains(terms.limit) else {
      throw EditProblem(
        .badTerms,
        "link \(Problem.quoted(name)) cannot hold \(terms.limit) packets; the range is \(LinkCapacity.packetRange.lowerBound) to \(LinkCapacity.packetRange.upperBound)",
        cure: "give it another capacity")
    }
    return terms
  }

  // MARK: Cycles

  /// Refuses links that would close a cycle without an asynchronous path, across runs and parts.
  static func checkCycles(_ links: [(from: LiveEnd, to: LiveEnd)], _ topology: Topology) throws(EditProblem) {
    var following: [LiveEnd: [LiveEnd]] = [:]
    for live in topology.links {
      guard let writer = live.writer, let reader = live.reader else { continue }
      following[LiveEnd(run: writer, end: live.from.end), default: []].append(
        LiveEnd(run: reader, end: live.to.end))
    }
    for link in links { following[link.from, default: []].append(link.to) }
    for link in links {
      var seen: Set<LiveEnd> = [link.to]
      var open = [link.to]
      while let input = open.popLast() {
        for output in synchronousOutputs(of: input) {
          if output == link.from { throw cycle(link) }
          for next in (following[output] ?? []) + planned(output, topology) where seen.insert(next).inserted {
            open.append(next)
          }
        }
      }
    }
  }

  private static func cycle(_ link: (from: LiveEnd, to: LiveEnd)) -> EditProblem {
    EditProblem(
      .cycle,
      "link \(Problem.quoted(LinkEditor.describe(link.from, link.to))) would close a cycle in which each node waits for the other",
      cure: "include an asynchronous node in the cycle, such as a service or playback")
  }

  /// The inputs that an output feeds by links of the plan.
  private static func planned(_ output: LiveEnd, _ topology: Topology) -> [LiveEnd] {
    let plan = output.run.plan
    let cut = topology.cut[output.run.id] ?? []
    return plan.links.indices.filter { plan.links[$0].from == output.end && !cut.contains($0) }
      .map { LiveEnd(run: output.run, end: plan.links[$0].to) }
  }

  /// Outputs that are computed from an input in the same call.
  private static func synchronousOutputs(of input: LiveEnd) -> [LiveEnd] {
    let node = input.node
    let from = contractName(node.inputs[input.end.port].name, node.contract.inputs)
    return node.outputs.indices.filter { port in
      let to = contractName(node.outputs[port].name, node.contract.outputs)
      return !node.contract.asynchronousPaths.contains { $0.from == from && $0.to == to }
    }.map { LiveEnd(run: input.run, end: .init(node: input.end.node, port: $0)) }
  }

  /// The name of a port in its contract: without the number of a repeated port.
  private static func contractName(_ name: String, _ ports: [PortContract]) -> String {
    ports.first { $0.copies != nil && name.hasPrefix($0.name) && Int(name.dropFirst($0.name.count)) != nil }?
      .name ?? name
  }
}
