import MillraceCore

enum BlockingLiveSource: Check {
  static let rule = "A link blocks only behind a source that is not live."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for (_, link, from, to) in graph.wired {
      guard let policy = link.whenFull, policy.value == .block else { continue }
      let writer = graph.nodes[from.node]
      guard writer.pacing == .live, let source = writer.liveSource.map({ graph.nodes[$0] }) else { continue }
      let name = Problem.quoted(graph.describe(from: from, to: to))
      problems.append(
        policy.place.error(
          .blockingLiveSource,
          "link \(name) cannot block: its source \(Problem.quoted(source.name)) (\(source.type.value)) is live",
          hint: "use \"dropOldest\""))
    }
  }
}
