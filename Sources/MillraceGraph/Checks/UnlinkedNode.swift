import MillraceCore

enum UnlinkedNode: Check {
  static let rule = "Every node has a link."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let suspects = graph.suspects
    for (index, node) in graph.nodes.enumerated() where !node.isLinked && !suspects.contains(index) {
      guard let contract = node.contract, !node.inputs.isEmpty || !node.outputs.isEmpty else { continue }
      // It is of use to a node beside it.
      if contract.endsWithOthers { continue }
      // A node that drives itself and needs no link can still post events to the program.
      let isUseless = !node.lackingInputs.isEmpty || !node.lackingOutputs.isEmpty || contract.drive != .itself
      let text = "node \(Problem.quoted(node.name)) has no links"
      let hint = "add one, or remove the node"
      problems.append(
        isUseless
          ? node.namePlace.error(.unlinkedNode, text, hint: hint)
          : node.namePlace.warning(.unlinkedNode, text, hint: hint))
    }
  }
}
