import MillraceCore

enum NodeObjection: Check {
  static let rule = "A node's own conditions on its parameters and inputs hold."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard case .refused(let objections) = node.outcome else { continue }
      for objection in objections {
        problems.append(
          node.place(of: objection.parameter).error(
            node.withoutSecrets(objection.text), hint: objection.cure.map { node.withoutSecrets($0) }))
      }
    }
  }
}
