import MillraceCore

enum UndecidedFormat: Check {
  static let rule = "Every link's format is decided before the graph starts."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (index, node) in graph.nodes.enumerated() {
      guard case .resolved = node.outcome else { continue }
      for port in node.outputs where graph.isUndecided(port, of: index) {
        problems.append(
          node.namePlace.error(
            "nothing says what \(Problem.quoted("\(node.name).\(port.name)")) carries",
            hint: "give \(node.type.value) a parameter or a linked input that decides it"))
      }
    }
  }
}
