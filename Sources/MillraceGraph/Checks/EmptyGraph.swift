import MillraceCore

enum EmptyGraph: Check {
  static let rule = "A graph has at least one node."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for scope in graph.scopes where scope.document.nodes.isEmpty {
      if scope.document.hasUnreadableNodes || !scope.document.invalidNodes.isEmpty { continue }
      problems.append(
        scope.document.place.error(
          .emptyGraph, "the graph has no nodes", hint: "add \"nodes\": { \"name\": { \"type\": \"…\" } }"))
    }
  }
}
