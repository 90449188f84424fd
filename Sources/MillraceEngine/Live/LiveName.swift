internal import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// The part and node that a name refers to; nil for the run's own nodes.
  func inPart(_ path: String) -> (part: GraphRun, node: String)? {
    if let slash = path.firstIndex(of: "/") {
      return part(named: String(path[..<slash])).map { ($0, String(path[path.index(after: slash)...])) }
    }
    guard let part = part(named: path), part.plan.nodes.count == 1 else { return nil }
    return (part, part.plan.nodes[0].name)
  }
}

/// Names of ports in a running graph: `mic`, `mix.in2`, `recorder/rec.in`.
enum LiveName {
  /// The port that a name refers to.
  static func end(_ path: String, isInput: Bool, in root: GraphRun) throws(EditProblem) -> LiveEnd {
    var run = root
    var names = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    let last = names.removeLast()
    for name in names {
      guard let part = run.part(named: name) else {
        throw unknown("part", run.path + name, partNames(of: run))
      }
      run = part
    }
    if let end = try end(last, isInput: isInput, within: run) { return end }
    // The name of a part alone means its only node.
    let (name, port) = split(last)
    if let part = run.part(named: name), part.plan.nodes.count == 1 {
      return LiveEnd(
        run: part, end: .init(node: 0, port: try Self.port(port, of: 0, isInput: isInput, in: part)))
    }
    throw unknown("node", run.path + name, run.plan.nodes.map { run.path + $0.name } + partNames(of: run))
  }

  /// The port in one run; nil when no node there has that name.
  private static func end(_ text: String, isInput: Bool, within run: GraphRun) throws(EditProblem) -> LiveEnd?
  {
    if let node = run.plan.nodes.firstIndex(where: { $0.name == text }) {
      return LiveEnd(
        run: run, end: .init(node: node, port: try port(nil, of: node, isInput: isInput, in: run)))
    }
    let (name, port) = split(text)
    guard let port, let node = run.plan.nodes.firstIndex(where: { $0.name == name }) else { return nil }
    return LiveEnd(
      run: run, end: .init(node: node, port: try Self.port(port, of: node, isInput: isInput, in: run)))
  }

  /// Node and port; node names of included graphs contain dots themselves.
  private static func split(_ text: String) -> (node: String, port: String?) {
    guard let dot = text.lastIndex(of: ".") else { return (text, nil) }
    return (String(text[..<dot]), String(text[text.index(after: dot)...]))
  }

  private static func port(_ name: String?, of node: Int, isInput: Bool, in run: GraphRun) throws(EditProblem)
    -> Int
  {
    let planned = run.plan.nodes[node]
    let names = (isInput ? planned.inputs : planned.outputs).map(\.name)
    let direction = isInput ? "input" : "output"
    let owner = Problem.quoted(run.path + planned.name)
    if let name {
      if let index = names.firstIndex(of: name) { return index }
      throw EditProblem(
        .unknownPort, "\(owner) has no \(direction) \(Problem.quoted(name))", cure: cure(names, direction))
    }
    let usable = names.filter { $0 != NodeContract.eventsPort }
    let plain = isInput ? "in" : "out"
    let chosen =
      usable.count == 1 ? usable[0] : usable.contains(plain) ? plain : usable.isEmpty ? names.first : nil
    guard let chosen, let index = names.firstIndex(of: chosen) else {
      let what = names.isEmpty ? "has no \(direction)" : "has several \(direction)s"
      throw EditProblem(.unknownPort, "\(owner) \(what)", cure: cure(names, direction))
    }
    return index
  }

  private static func cure(_ names: [String], _ direction: String) -> String {
    names.isEmpty
      ? "link another node" : "its \(direction)s are \(names.map(Problem.quoted).joined(separator: ", "))"
  }

  private static func partNames(of run: GraphRun) -> [String] {
    run.parts.withLock { $0.runs.map { $0.path.dropLast() } }.map(String.init)
  }

  private static func unknown(_ what: String, _ name: String, _ known: [String]) -> EditProblem {
    let near = Spelling.nearest(to: name, among: known).map { "did you mean \(Problem.quoted($0))?" }
    return EditProblem(
      .unknownNode, "there is no \(what) \(Problem.quoted(name))",
      cure: near ?? "name a running \(what)")
  }
}
