import MillraceCore

enum IdleNode: Check {
  static let rule = "Every node runs: it is a source, or one of its driving inputs is linked."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let suspects = graph.suspects
    for (index, node) in graph.nodes.enumerated() where node.isLinked && !suspects.contains(index) {
      guard let contract = node.contract, contract.drive != .itself, contract.asynchronousPaths.isEmpty else {
        continue
      }
      // `UnlinkedPort` reports required inputs.
      if node.inputs.isEmpty || !node.lackingInputs.isEmpty { continue }
      let drivers = node.inputs.filter(\.contract.drives)
      if drivers.contains(where: { !$0.links.isEmpty }) { continue }
      problems.append(
        node.namePlace.error(
          .nodeNeverRuns,
          "node \(Problem.quoted(node.name)) never runs: none of its driving inputs is linked",
          hint: "link \(Wording.oneOf(drivers.prefix(3).map { "\(node.name).\($0.name)" }))"))
    }
  }
}
