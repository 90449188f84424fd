import MillraceCore

enum UnknownPort: Check {
  static let rule = "Links name existing ports, and always name the port when a node has several."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for end in graph.unresolvedEnds {
      let port = end.isInput.map { $0 ? "input" : "output" } ?? "port"
      let node = Problem.quoted(end.node)
      switch end.reason {
      case .unknownNode: continue
      case .noPorts:
        let cure = end.isInput == true ? "it can only start a link" : "it can only end a link"
        problems.append(end.place.error(.unknownPort, "\(node) (\(end.owner)) has no \(port)s", hint: cure))
      case .unknownPort(let name, let known):
        let nearest = Spelling.hint(for: name, among: known.all)
        problems.append(
          end.place.error(
            .unknownPort, "\(node) (\(end.owner)) has no \(port) \(Problem.quoted(name))",
            hint: nearest ?? listing(known, port)))
      case .invalidNumber(let name, let range):
        problems.append(
          end.place.error(
            .unknownPort,
            "the \(port)s of \(node) (\(end.owner)) are numbered \(range.lowerBound) to \(range.upperBound)",
            hint: "write \"\(end.node).\(name)1\""))
      case .ambiguous(let names):
        problems.append(
          end.place.error(
            .ambiguousPort,
            "\(node) (\(end.owner)) has several \(port)s: \(Wording.joined(names.shown, by: "and"))",
            hint: "write \"\(end.node).\(names.all.first ?? "")\""))
      case .severalOpen(let name, let nodes):
        problems.append(
          end.place.error(
            .ambiguousPort,
            "several nodes of \(end.owner) have an unlinked \(port) \(Problem.quoted(name)): \(Wording.list(nodes))",
            hint: "add one to its \"expose\""))
      }
    }
  }

  private static func listing(_ names: PortNames, _ port: String) -> String {
    let verb = names.shown.count == 1 ? "its only \(port) is" : "its \(port)s are"
    return "\(verb) \(Wording.joined(names.shown, by: "and"))"
  }
}
