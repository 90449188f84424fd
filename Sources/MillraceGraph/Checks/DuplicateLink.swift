import MillraceCore

enum DuplicateLink: Check {
  static let rule = "No link is written twice."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var seen: Set<[PortRef]> = []
    for (_, link, from, to) in graph.wired where !seen.insert([from, to]).inserted {
      problems.append(
        link.place.error(
          "link \(Problem.quoted(graph.describe(from: from, to: to))) is written twice",
          hint: "take one of them out"))
    }
  }
}
