import MillraceCore

enum UndeterminedFormat: Check {
  static let rule = "The format of every link is known before the graph starts."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (index, node) in graph.nodes.enumerated() {
      guard case .resolved = node.outcome else { continue }
      for port in node.outputs where graph.isUndetermined(port, of: index) {
        problems.append(
          node.namePlace.error(
            .undeterminedFormat, "the format of \(Problem.quoted("\(node.name).\(port.name)")) is unknown",
            hint: "set a parameter of \(node.type.value), or link an input, that determines it"))
      }
    }
  }
}
