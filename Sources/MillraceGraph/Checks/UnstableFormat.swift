import MillraceCore

enum UnstableFormat: Check {
  static let rule = "The formats of a cycle converge."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    guard let index = graph.unstableNode else { return }
    let node = graph.nodes[index]
    problems.append(
      node.namePlace.error(
        .unstableFormat,
        "the formats of the cycle through \(Problem.quoted(node.name)) do not converge: its output changes with every pass",
        hint: "remove it from the cycle"))
  }
}
