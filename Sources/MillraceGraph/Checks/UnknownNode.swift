import MillraceCore

enum UnknownNode: Check {
  static let rule = "Links name nodes that exist."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (index, end) in graph.brokenEnds.enumerated() {
      guard case .unknownNode(let name) = end.reason else { continue }
      let known = graph.scopes[end.scope].members.keys
      let near = index < GraphDraft.mostGuesses ? Spelling.hint(for: name, among: known) : nil
      problems.append(
        end.place.error("there is no node \(Problem.quoted(name))", hint: near ?? "add it under \"nodes\""))
    }
  }
}
