import MillraceCore

enum SharedEnd: Check {
  static let rule = "What ends with another node is a source, and that node is there and ends first."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let targets = graph.nodes.map { graph.sharedEnd(of: $0) }
    for (index, node) in graph.nodes.enumerated() {
      guard let name = node.endsWith else { continue }
      guard let target = targets[index] else {
        complain(of: name, of: node, graph, &problems)
        continue
      }
      if target == index {
        problems.append(
          name.place.error(
            "\(Problem.quoted(node.name)) cannot end with itself", hint: "name the node it serves"))
      } else if node.contract != nil, node.inputs.contains(where: { !$0.links.isEmpty }) {
        problems.append(
          name.place.error(
            "\(Problem.quoted(node.name)) has linked inputs and ends when they do; only a source can end with another node",
            hint: "put \"endsWith\" on the source its packets come from"))
      }
    }
    for cycle in cycles(targets) {
      let names = (cycle + [cycle[0]]).map { graph.nodes[$0].name }
      guard let place = graph.nodes[cycle[0]].endsWith?.place else { continue }
      problems.append(
        place.error(
          "\(Problem.quoted(names.joined(separator: " -> "))) is a cycle in which each ends with the next, so that none ends first",
          hint: "take one \"endsWith\" out"))
    }
  }

  private static func complain(
    of name: Located<String>, of node: DraftNode, _ graph: GraphDraft, _ problems: inout Problems
  ) {
    let scope = graph.scopes[node.scope]
    let written = String(name.value.dropFirst(scope.prefix.count))
    switch scope.members[written] {
    case .include:
      problems.append(
        name.place.error(
          "\(Problem.quoted(written)) is an included graph, which does not end as a whole",
          hint: "name a node of it: \(Problem.quoted("\(written).node"))"))
    // Told already.
    case .broken: break
    case .node, nil:
      let near = Spelling.hint(for: written, among: scope.members.keys.sorted())
      problems.append(
        name.place.error(
          "there is no node \(Problem.quoted(written))", hint: near ?? "add it under \"nodes\""))
    }
  }

  /// Rings of two nodes or more, each from its first node in the file on.
  private static func cycles(_ targets: [Int?]) -> [[Int]] {
    StrongComponents(successors: targets.map { $0.map { [$0] } ?? [] }).groups.compactMap { group in
      guard group.count > 1, let first = group.first else { return nil }
      var cycle = [first]
      while let next = targets[cycle[cycle.count - 1]], next != first { cycle.append(next) }
      return cycle
    }
  }
}

extension GraphDraft {
  /// The node that a node ends with; nil when it says none, or one that is not there.
  func sharedEnd(of node: DraftNode) -> Int? {
    guard let name = node.endsWith?.value else { return nil }
    return nodes.firstIndex { $0.name == name }
  }
}
