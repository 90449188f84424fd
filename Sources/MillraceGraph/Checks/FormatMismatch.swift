import MillraceCore

enum FormatMismatch: Check {
  static let rule = "Every link carries what the port it leads to takes."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (index, link, from, to) in graph.wired where !graph.accepts(index) {
      guard let format = graph.nodes[from.node].shape(ofOutput: from.index)?.format else { continue }
      let accepted = graph.nodes[to.node].inputs[to.index].contract.formats
      let name = Problem.quoted(graph.describe(from: from, to: to))
      let reader = Problem.quoted(graph.describe(to))
      let steps = Mending(format, accepted)?.steps ?? []
      // Only what the catalogue has can be put anywhere.
      let canMend = !steps.isEmpty && steps.allSatisfy { graph.contracts[$0.type] != nil }
      problems.append(
        link.place.error(
          "link \(name) carries \(format) but \(reader) takes \(accepted)",
          hint: canMend ? "put \(Wording.joined(steps.map(\.shown), by: "and")) between" : nil))
    }
  }
}
