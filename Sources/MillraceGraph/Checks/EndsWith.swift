import MillraceCore

enum EndsWith: Check {
  static let rule = "A node with \"endsWith\" is a source, and the node it names exists and ends first."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let targets = graph.nodes.map { graph.endsWithTarget(of: $0) }
    for (index, node) in graph.nodes.enumerated() {
      guard let name = node.endsWith else { continue }
      guard let target = targets[index] else {
        reportUnknown(name, of: node, graph, &problems)
        continue
      }
      if target == index {
        problems.append(
          name.place.error(
            .invalidEndsWith, "\(Problem.quoted(node.name)) cannot end with itself", hint: "name another node"
          ))
      } else if node.contract != nil, node.inputs.contains(where: { !$0.links.isEmpty }) {
        problems.append(
          name.place.error(
            .invalidEndsWith,
            "\"endsWith\" is only for sources: \(Problem.quoted(node.name)) has linked inputs and ends when they do",
            hint: "set it on the source of its packets"))
      }
    }
    for cycle in cycles(targets) {
      let names = (cycle + [cycle[0]]).map { graph.nodes[$0].name }
      guard let place = graph.nodes[cycle[0]].endsWith?.place else { continue }
      problems.append(
        place.error(
          .invalidEndsWith,
          "the cycle \(Problem.quoted(names.joined(separator: " -> "))) of \"endsWith\" never ends",
          hint: "remove one \"endsWith\""))
    }
  }

  private static func reportUnknown(
    _ name: Located<String>, of node: DraftNode, _ graph: GraphDraft, _ problems: inout Problems
  ) {
    let scope = graph.scopes[node.scope]
    let written = String(name.value.dropFirst(scope.prefix.count))
    switch scope.members[written] {
    case .include:
      problems.append(
        name.place.error(
          .invalidEndsWith, "\"endsWith\" must name a node, \(Problem.quoted(written)) is an included graph",
          hint: "name one of its nodes, as in \(Problem.quoted("\(written).node"))"))
    case .invalid: break  // Already reported.
    case .node, nil:
      let near = Spelling.hint(for: written, among: scope.members.keys.sorted())
      problems.append(
        name.place.error(
          .unknownNode, "unknown node \(Problem.quoted(written))", hint: near ?? "add it to \"nodes\""))
    }
  }

  /// Cycles of two or more nodes, each from its first node in the file.
  private static func cycles(_ targets: [Int?]) -> [[Int]] {
    StronglyConnectedComponents(successors: targets.map { $0.map { [$0] } ?? [] }).groups.compactMap {
      group in
      guard group.count > 1, let first = group.first else { return nil }
      var cycle = [first]
      while let next = targets[cycle[cycle.count - 1]], next != first { cycle.append(next) }
      return cycle
    }
  }
}

extension GraphDraft {
  /// The node that a node ends with; nil when it names none or an unknown one.
  func endsWithTarget(of node: DraftNode) -> Int? {
    guard let name = node.endsWith?.value else { return nil }
    return nodes.firstIndex { $0.name == name }
  }
}
