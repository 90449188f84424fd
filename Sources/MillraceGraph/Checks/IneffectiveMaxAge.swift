import MillraceCore

enum IneffectiveMaxAge: Check {
  static let rule =
    "A node with \"maxAge\" has a linked input, and the graph a source that follows the clock."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let isUnresolved = graph.nodes.contains { $0.resolution == nil }
    let followsClock = graph.nodes.contains { $0.pacing != .waits }
    for node in graph.nodes {
      guard let maxAge = node.maxAge, node.contract != nil else { continue }
      if !node.inputs.contains(where: { !$0.links.isEmpty }) {
        problems.append(
          maxAge.place.warning(
            .noEffect, "\"maxAge\" has no effect: \(Problem.quoted(node.name)) has no linked input",
            hint: "set it on a node that receives packets"))
      } else if !followsClock && !isUnresolved {
        problems.append(
          maxAge.place.warning(
            .noEffect, "\"maxAge\" has no effect: no source follows the clock, so packets have no age",
            hint: "pace the source, or remove \"maxAge\""))
      }
    }
  }
}
