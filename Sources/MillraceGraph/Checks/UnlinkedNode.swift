import MillraceCore

enum UnlinkedNode: Check {
  static let rule = "Every node is linked to another."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let suspects = graph.suspects
    for (index, node) in graph.nodes.enumerated() where !node.isLinked && !suspects.contains(index) {
      guard let contract = node.contract, !node.inputs.isEmpty || !node.outputs.isEmpty else { continue }
      // A node of its own that needs no link may still do its work: it posts events to the program.
      let isUseless = !node.lackingInputs.isEmpty || !node.lackingOutputs.isEmpty || contract.drive != .itself
      let text = "node \(Problem.quoted(node.name)) is not linked to anything"
      let hint = "add a link, or take the node out"
      problems.append(
        isUseless ? node.namePlace.error(text, hint: hint) : node.namePlace.warning(text, hint: hint))
    }
  }
}
