import MillraceCore

enum UnknownParameter: Check {
  static let rule = "A node sets only parameters that its type has."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard let contract = node.contract else { continue }
      for (name, _) in node.arguments where contract.parameter(name.value) == nil {
        let known = contract.parameters.map(\.name)
        problems.append(
          name.place.error(
            .unknownParameter, "\(contract.type) has no parameter \(Problem.quoted(name.value))",
            hint: hint(name.value, known)))
      }
    }
  }

  private static func hint(_ name: String, _ known: [String]) -> String {
    if ["clock", "parameters", "nodes", "links", "expose"].contains(name) {
      return "\(Problem.quoted(name)) is a key of the graph, not of a node"
    }
    return Spelling.hint(for: name, among: known + GraphKeys.node) ?? listing(known)
  }

  private static func listing(_ known: [String]) -> String {
    switch known.count {
    case 0: "it has no parameters"
    case 1: "its only parameter is \(Wording.list(known))"
    default: "its parameters are \(Wording.list(known))"
    }
  }
}
