import MillraceCore

enum UnknownSetting: Check {
  static let rule = "Values set from outside a graph are for parameters that it declares."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let main = graph.scopes[0]
    for name in graph.unknownSets {
      problems.append(
        Problem(
          "--set \(name): unknown parameter \(Problem.quoted(name))", code: .unknownGraphParameter,
          hint: hint(name, declaredBy: main)))
    }
    for scope in graph.scopes {
      for setting in scope.unknownSettings {
        let name = setting.name.value
        problems.append(
          setting.name.place.error(
            .unknownGraphParameter, "\(scope.title) has no parameter \(Problem.quoted(name))",
            hint: hint(name, declaredBy: scope)))
      }
    }
  }

  private static func hint(_ name: String, declaredBy scope: Scope) -> String {
    let known = scope.document.parameters.map(\.name.value)
    if known.isEmpty { return "the graph has no parameters" }
    return Spelling.hint(for: name, among: known) ?? "its parameters are \(Wording.list(known))"
  }
}
