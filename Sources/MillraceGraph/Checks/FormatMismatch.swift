import MillraceCore

enum FormatMismatch: Check {
  static let rule = "Every link carries a format that its input accepts."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (index, link, from, to) in graph.wired where !graph.accepts(index) {
      guard let format = graph.nodes[from.node].shape(ofOutput: from.index)?.format else { continue }
      let accepted = graph.nodes[to.node].inputs[to.index].contract.formats
      let name = Problem.quoted(graph.describe(from: from, to: to))
      let reader = Problem.quoted(graph.describe(to))
      let steps = FormatConversion(format, accepted)?.steps ?? []
      // The catalogue may lack the converters.
      let isConvertible = !steps.isEmpty && steps.allSatisfy { graph.contracts[$0.type] != nil }
      problems.append(
        link.place.error(
          .formatMismatch, "link \(name) carries \(format), but \(reader) accepts \(accepted)",
          hint: isConvertible ? "insert \(Wording.joined(steps.map(\.shown), by: "and"))" : nil))
    }
  }
}
