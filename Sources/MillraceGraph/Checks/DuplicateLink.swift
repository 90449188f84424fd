import MillraceCore

enum DuplicateLink: Check {
  static let rule = "Every link is unique."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var seen: Set<[PortRef]> = []
    for (_, link, from, to) in graph.wired where !seen.insert([from, to]).inserted {
      problems.append(
        link.place.error(
          .duplicateLink, "duplicate link \(Problem.quoted(graph.describe(from: from, to: to)))",
          hint: "remove one of them"))
    }
  }
}
