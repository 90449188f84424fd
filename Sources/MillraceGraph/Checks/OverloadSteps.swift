import MillraceCore

enum OverloadSteps: Check {
  static let rule =
    "The steps of \"overload\" are sorted, have an action, and name live parameters and nodes with a linked input."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var last = 0
    for step in graph.overload {
      if let above = step.above {
        if above.value <= last {
          problems.append(
            above.place.error(
              .invalidOverload, "\"above\" must rise from step to step, found \(above.value) after \(last)",
              hint: "sort the steps"))
        }
        last = max(last, above.value)
      }
      if !step.hasAction {
        problems.append(
          step.place.error(
            .invalidOverload, "the overload step has no action",
            hint: "add \"set\", \"shed\" or \"refuse\": true"))
      }
      for (target, value) in step.settings { examine(target, value, graph, &problems) }
      for name in step.shed { examine(shed: name, graph, &problems) }
    }
  }

  private static func examine(
    _ target: Located<String>, _ value: ExpandedValue, _ graph: GraphDraft, _ problems: inout Problems
  ) {
    switch graph.target(of: target.value) {
    case .noParameterNamed:
      problems.append(
        target.place.error(
          .invalidOverload, "\(Problem.quoted(target.value)) does not name a parameter",
          hint: "write \"node.parameter\""))
    case .unknownNode(let name): reportUnknownNode(name, at: target.place, graph, &problems)
    case .unknownParameter(let node, let name):
      guard let contract = graph.nodes[node].contract else { return }
      let live = contract.parameters.filter(\.isLive).map(\.name)
      problems.append(
        target.place.error(
          .unknownParameter, "\(contract.type) has no parameter \(Problem.quoted(name))",
          hint: Spelling.hint(for: name, among: live) ?? cure(live)))
    case .found(let node, let parameter):
      let type = graph.nodes[node].type.value
      guard parameter.isLive else {
        let live = graph.nodes[node].contract.map { $0.parameters.filter(\.isLive).map(\.name) } ?? []
        problems.append(
          target.place.error(
            .notLive, "\(Problem.quoted(parameter.name)) of \(type) cannot be set while the graph runs",
            hint: cure(live)))
        return
      }
      guard let written = value.value, (try? parameter.read(value)) == nil else { return }
      problems.append(
        value.place.error(
          .parameterOutOfRange,
          "\(Problem.quoted(parameter.name)) of \(type) must be \(parameter.kind.requirement(unit: parameter.unit)), found \(value.shown(written))"
        ))
    }
  }

  private static func cure(_ live: [String]) -> String {
    switch live.count {
    case 0: "it has no live parameters"
    case 1: "its only live parameter is \(Wording.list(live))"
    default: "its live parameters are \(Wording.list(live))"
    }
  }

  private static func examine(shed name: Located<String>, _ graph: GraphDraft, _ problems: inout Problems) {
    guard let node = graph.nodes.first(where: { $0.name == name.value }) else {
      return reportUnknownNode(name.value, at: name.place, graph, &problems)
    }
    guard node.contract != nil, !node.inputs.contains(where: { !$0.links.isEmpty }) else { return }
    problems.append(
      name.place.error(
        .invalidOverload, "\(Problem.quoted(name.value)) has no linked input to shed",
        hint: "name the node after it"))
  }

  private static func reportUnknownNode(
    _ name: String, at place: Place, _ graph: GraphDraft, _ problems: inout Problems
  ) {
    let near = Spelling.hint(for: name, among: graph.nodes.map(\.name))
    problems.append(
      place.error(
        .unknownNode, "unknown node \(Problem.quoted(name))", hint: near ?? "add it to \"nodes\""))
  }
}
