import MillraceCore

enum NodeRejection: Check {
  static let rule = "Every node accepts its parameters and the formats of its inputs."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let secrets = graph.secrets
    for node in graph.nodes {
      guard case .refused(let objections) = node.outcome else { continue }
      for objection in objections {
        problems.append(
          node.place(of: objection.parameter).error(
            .nodeRejected, secrets.redacting(objection.text),
            hint: objection.cure.map { secrets.redacting($0) }))
      }
    }
  }
}
