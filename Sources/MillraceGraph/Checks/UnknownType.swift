import MillraceCore

enum UnknownType: Check {
  static let rule = "Every node has a type of the catalogue."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes where node.contract == nil {
      let name = node.type.value
      let nearest = Spelling.hint(for: name, among: graph.contracts.keys)
      problems.append(
        node.type.place.error(
          "there is no node type \(Problem.quoted(name))",
          hint: nearest ?? "\"millrace nodes\" lists them all"))
    }
  }
}
