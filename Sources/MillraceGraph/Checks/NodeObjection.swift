import MillraceCore

enum NodeObjection: Check {
  static let rule = "A node's own conditions on its parameters and inputs hold."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let secrets = graph.secrets
    for node in graph.nodes {
      guard case .refused(let objections) = node.outcome else { continue }
      for objection in objections {
        problems.append(
          node.place(of: objection.parameter).error(
            secrets.redacting(objection.text), hint: objection.cure.map { secrets.redacting($0) }))
      }
    }
  }
}
