import MillraceCore

enum UnusedParameter: Check {
  static let rule = "Every declared parameter is used."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for scope in graph.scopes {
      for parameter in scope.document.parameters {
        if parameter.isBroken || scope.used.contains(parameter.name.value) { continue }
        let name = parameter.name.value
        problems.append(
          parameter.name.place.warning(
            "parameter \(Problem.quoted(name)) is never used",
            hint: "write \"${\(name)}\" where its value belongs"))
      }
    }
  }
}
