import MillraceCore

enum UnknownNode: Check {
  static let rule = "Links name nodes that exist."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for end in graph.brokenEnds {
      guard case .unknownNode(let name) = end.reason else { continue }
      let known = graph.scopes[end.scope].members.keys
      problems.append(
        end.place.error(
          "there is no node \(Problem.quoted(name))",
          hint: Spelling.hint(for: name, among: known) ?? "add it under \"nodes\""))
    }
  }
}
