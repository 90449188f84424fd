import MillraceCore

enum UnknownPort: Check {
  static let rule = "Links name ports that exist, and name them where a node has several."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for end in graph.brokenEnds {
      let port = end.isInput.map { $0 ? "input" : "output" } ?? "port"
      let node = Problem.quoted(end.node)
      switch end.reason {
      case .unknownNode: continue
      case .noPorts:
        let other = end.isInput == true ? "links can only lead away from it" : "links can only lead to it"
        problems.append(end.place.error("\(node) (\(end.owner)) has no \(port)", hint: other))
      case .unknownPort(let name, let known):
        let nearest = Spelling.hint(for: name, among: known.all)
        problems.append(
          end.place.error(
            "\(node) (\(end.owner)) has no \(port) \(Problem.quoted(name))",
            hint: nearest ?? listing(known)))
      case .badNumber(let name, let range):
        problems.append(
          end.place.error(
            "the \(port)s of \(node) (\(end.owner)) are numbered \(range.lowerBound) to \(range.upperBound)",
            hint: "write \"\(end.node).\(name)1\""))
      case .ambiguous(let names):
        problems.append(
          end.place.error(
            "\(node) (\(end.owner)) has several \(port)s: \(Wording.joined(names.shown, by: "and"))",
            hint: "write \"\(end.node).\(names.all.first ?? "")\""))
      case .manyOpen(let name, let nodes):
        problems.append(
          end.place.error(
            "several nodes of \(end.owner) have an open \(port) \(Problem.quoted(name)): \(Wording.list(nodes))",
            hint: "name one under \"expose\" there"))
      }
    }
  }

  private static func listing(_ names: PortNames) -> String {
    "\(names.shown.count == 1 ? "its only one is" : "it has") \(Wording.joined(names.shown, by: "and"))"
  }
}
