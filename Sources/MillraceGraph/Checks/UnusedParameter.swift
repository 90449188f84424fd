import MillraceCore

enum UnusedParameter: Check {
  static let rule = "Every declared parameter is used."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for scope in graph.scopes {
      for parameter in scope.document.parameters {
        if parameter.isInvalid || scope.used.contains(parameter.name.value) { continue }
        let name = parameter.name.value
        problems.append(
          parameter.name.place.warning(
            .unusedParameter, "parameter \(Problem.quoted(name)) is never used",
            hint: "use it as \"${\(name)}\", or remove it"))
      }
    }
  }
}
