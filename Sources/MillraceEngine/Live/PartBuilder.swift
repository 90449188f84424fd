internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Adds a part to a running graph: checks it with its links, creates its nodes, links and starts it.
struct PartBuilder {
  private let parent: GraphRun
  private let name: String
  private let edit: GraphEdit

  init(_ parent: GraphRun, _ name: String, _ edit: GraphEdit) {
    self.parent = parent
    self.name = name
    self.edit = edit
  }

  func make(_ graph: GraphDescription, _ settings: GraphSettings, observesEvents: Bool) throws(EditProblem)
    -> GraphRun
  {
    try checkName()
    try checkParent()
    let plan = try plan(graph, settings)
    let part = try build(plan, observesEvents)
    try parent.engine.edit { (editor) throws(EditProblem) in
      guard parent.parts.withLock({ $0.add(part) }) else {
        try checkName()
        throw EditProblem(.ended, "the run is ending", cure: "add parts before it drains or stops")
      }
      do throws(EditProblem) {
        try checkParent()
        try editor.take(edit.steps, in: parent)
        try editor.makeLinks()
        try retainParent()
      } catch {
        // The parent may have begun to stop meanwhile, and wait only for this part.
        if parent.parts.withLock({ $0.remove(part) }) { parent.engine.supervisor.post(.retired(parent)) }
        throw error
      }
      editor.attachReaders()
      parent.reply.join(parent)
      parent.reply.join(part)
      parent.announce("partStarted") { $0.member("part", name) }
      // The part's outputs are linked before it starts, its inputs are fed after it has.
      editor.moveWriters { $0 === part }
      part.start()
      editor.moveWriters { $0 !== part }
      if !parent.parts.withLock({ $0.finish() }) { part.stop() }
    }
    inheritDrain(part)
    return part
  }

  private func checkName() throws(EditProblem) {
    if let objection = Names.objection(to: name, of: "part") {
      throw EditProblem(.badName, objection, cure: Names.rule)
    }
    // Nodes of an included graph have its name as a prefix.
    let isTaken =
      parent.part(named: name) != nil
      || parent.plan.nodes.contains { $0.name == name || $0.name.hasPrefix(name + ".") }
    if isTaken {
      throw EditProblem(
        .badName, "\(Problem.quoted(parent.path + name)) is already the name of a node or part",
        cure: "choose another name, or remove the other first")
    }
  }

  private func checkParent() throws(EditProblem) {
    try LinkRules.checkLife(ofRun: parent)
  }

  /// Makes the run end after the part. Throws when all its nodes have just ended.
  private func retainParent() throws(EditProblem) {
    var count = parent.liveCells.load(ordering: .acquiring)
    while count > 0 {
      let (exchanged, seen) = parent.liveCells.compareExchange(
        expected: count, desired: count + 1, ordering: .acquiringAndReleasing)
      if exchanged { return }
      count = seen
    }
    throw EditProblem(.ended, "the run has ended", cure: "start another one")
  }

  /// Applies the run's drain, or its drain time, to the part.
  private func inheritDrain(_ part: GraphRun) {
    if parent.phase == .draining { part.drain(alone: false) }
    let time = parent.drainTime.load(ordering: .acquiring)
    guard time != Nanoseconds.max else { return }
    let isKnown = part.epoch.load(ordering: .acquiring) != Nanoseconds.max
    let shift = isKnown ? part.timeShift - parent.timeShift : parent.graphTime
    part.drain(atGraphTime: max(0, time - shift))
  }

  private func build(_ plan: GraphPlan, _ observesEvents: Bool) throws(EditProblem) -> GraphRun {
    guard !plan.nodes.isEmpty else {
      throw EditProblem(.badGraph, "part \(Problem.quoted(name)) has no nodes", cure: "add one")
    }
    do throws(StartProblem) {
      return try RunBuilder.build(
        plan, on: parent.owner, observesEvents: observesEvents, family: (parent, name))
    } catch {
      let code: EditProblem.Code = error.node.isEmpty ? .memory : .badGraph
      throw EditProblem(
        code, "part \(Problem.quoted(name)): \(StartProblem(node: error.node, text: error.text))",
        cure: error.cure)
    }
  }

  // MARK: The graph and its boundary

  /// The part's own plan, checked together with the links of the edit.
  private func plan(_ graph: GraphDescription, _ settings: GraphSettings) throws(EditProblem) -> GraphPlan {
    var outputs: [LiveEnd] = []
    var inlets: [PartPlan.RunningOutput] = []
    var links: [PartPlan.BoundaryLink] = []
    for step in edit.steps {
      guard let (text, capacity, policy) = step.madeLink else { continue }
      let ends = try GraphEdit.ends(of: text)
      switch (inner(ends.from), inner(ends.to)) {
      case (nil, let inside?):
        let output = try LiveName.end(ends.from, isInput: false, in: parent)
        let index = outputs.firstIndex(of: output) ?? outputs.count
        if index == outputs.count {
          outputs.append(output)
          inlets.append(try inlet(output))
        }
        links.append(.init(from: index, to: inside, capacity: capacity, whenFull: policy))
      case (let inside?, nil):
        let input = try LiveName.end(ends.to, isInput: true, in: parent)
        guard let shape = input.node.inputs[input.end.port].shape else { continue }
        links.append(
          .init(
            from: inside, to: (input.described(isInput: true), shape.format), capacity: capacity,
            whenFull: policy))
      case (nil, nil): continue
      case (_?, _?):
        throw EditProblem(
          .badLink, "link \(Problem.quoted(text)) is inside the part", cure: "put it into the part's graph")
      }
    }
    var settings = settings
    settings.clock = parent.engine.clock
    do throws(Problems) {
      return try PartPlan(
        graph, outputs: inlets, links: links, settings: settings, catalogue: parent.engine.catalogue
      ).plan
    } catch {
      throw EditProblem(.badGraph, "part \(Problem.quoted(name)) failed the checks:\n\(error)")
    }
  }

  /// The name inside the part; nil for a name of the run.
  private func inner(_ end: String) -> String? {
    if end.hasPrefix(name + "/") { return String(end.dropFirst(name.count + 1)) }
    // The name of the part alone means its only node, which the checks find.
    return end == name || end.hasPrefix(name + ".") ? String(end.dropFirst(name.count)) : nil
  }

  private func inlet(_ output: LiveEnd) throws(EditProblem) -> PartPlan.RunningOutput {
    let described = output.described(isInput: false)
    guard let shape = output.node.outputs[output.end.port].shape else {
      throw EditProblem(
        .nothingCarried, "\(Problem.quoted(described)) carries nothing", cure: "link it in the graph")
    }
    return PartPlan.RunningOutput(
      name: described, shape: shape, pacing: output.node.pacing, lane: output.node.lane)
  }
}

extension GraphEdit.Step {
  /// The link that the step adds.
  fileprivate var madeLink: (String, LinkCapacity?, LinkPolicy?)? {
    switch self {
    case .link(let text, let capacity, let policy), .relink(let text, let capacity, let policy):
      (text, capacity, policy)
    case .unlink: nil
    }
  }
}
