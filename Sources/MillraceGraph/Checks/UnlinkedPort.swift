import MillraceCore

enum UnlinkedPort: Check {
  static let rule = "Every required port is linked."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let suspects = graph.suspects
    for (index, node) in graph.nodes.enumerated() where node.isLinked && !suspects.contains(index) {
      for port in node.lackingInputs {
        problems.append(
          node.namePlace.error(
            .unlinkedPort,
            "input \(Problem.quoted("\(node.name).\(port.name)")) (\(Wording.phrase(port.contract.text))) is not linked",
            hint: "add a link to it"))
      }
      for port in node.lackingOutputs {
        let hint =
          graph.contracts["flow.null"] == nil
          ? "add a link from it" : "add a link from it, to a flow.null if it is not needed"
        problems.append(
          node.namePlace.error(
            .unlinkedPort,
            "output \(Problem.quoted("\(node.name).\(port.name)")) (\(Wording.phrase(port.contract.text))) is not linked",
            hint: hint))
      }
    }
  }
}
