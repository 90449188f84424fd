import MillraceCore

enum UnknownType: Check {
  static let rule = "The type of every node is in the catalogue."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes where node.contract == nil {
      let name = node.type.value
      let nearest = Spelling.hint(for: name, among: graph.contracts.keys)
      problems.append(
        node.type.place.error(
          .unknownType, "unknown node type \(Problem.quoted(name))",
          hint: nearest ?? "run \"millrace nodes\" for a list"))
    }
  }
}
