import MillraceCore

enum UnmeasuredAge: Check {
  static let rule = "Where packets must not be too old, packets come, and their age is known."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let isLost = graph.nodes.contains { $0.resolution == nil }
    let followsClock = graph.nodes.contains { $0.pacing != .waits }
    for node in graph.nodes {
      guard let maxAge = node.maxAge, node.contract != nil else { continue }
      if !node.inputs.contains(where: { !$0.links.isEmpty }) {
        problems.append(
          maxAge.place.warning(
            "\"maxAge\" has no effect: no packet reaches \(Problem.quoted(node.name))",
            hint: "set it where packets arrive"))
      } else if !followsClock && !isLost {
        problems.append(
          maxAge.place.warning(
            "\"maxAge\" has no effect: without a source that follows the clock, packets have no age",
            hint: "pace the source, or take it out"))
      }
    }
  }
}
