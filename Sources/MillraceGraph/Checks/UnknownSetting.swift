import MillraceCore

enum UnknownSetting: Check {
  static let rule = "Values given to a graph from outside belong to parameters it declares."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let main = graph.scopes[0]
    for name in graph.unknownSets {
      problems.append(
        Problem(
          "--set \(name): the graph has no parameter \(Problem.quoted(name))",
          hint: hint(name, declaredBy: main)))
    }
    for scope in graph.scopes {
      for setting in scope.unknownSettings {
        let name = setting.name.value
        problems.append(
          setting.name.place.error(
            "\(scope.title) has no parameter \(Problem.quoted(name))", hint: hint(name, declaredBy: scope)))
      }
    }
  }

  private static func hint(_ name: String, declaredBy scope: Scope) -> String {
    let known = scope.document.parameters.map(\.name.value)
    if known.isEmpty { return "it declares none" }
    return Spelling.hint(for: name, among: known) ?? "it declares \(Wording.list(known))"
  }
}
