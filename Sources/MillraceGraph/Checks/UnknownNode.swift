import MillraceCore

enum UnknownNode: Check {
  static let rule = "Links name existing nodes."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (index, end) in graph.unresolvedEnds.enumerated() {
      guard case .unknownNode(let name) = end.reason else { continue }
      let known = graph.scopes[end.scope].members.keys
      let near = index < GraphDraft.maxSuggestions ? Spelling.hint(for: name, among: known) : nil
      problems.append(
        end.place.error(
          .unknownNode, "unknown node \(Problem.quoted(name))", hint: near ?? "add it to \"nodes\""))
    }
  }
}
