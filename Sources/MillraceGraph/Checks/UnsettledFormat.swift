import MillraceCore

enum UnsettledFormat: Check {
  static let rule = "The formats of a cycle settle."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    guard let index = graph.unsettled else { return }
    let node = graph.nodes[index]
    problems.append(
      node.namePlace.error(
        "the formats around \(Problem.quoted(node.name)) never settle: its contract answers anew each time",
        hint: "take it out of the cycle"))
  }
}
