import MillraceCore

enum OverloadSteps: Check {
  static let rule =
    "The steps against overload rise, do something, and name what can be changed while the graph runs."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var last = 0
    for step in graph.overload {
      if let above = step.above {
        if above.value <= last {
          problems.append(
            above.place.error(
              "the steps of \"overload\" rise, found \(above.value) after \(last)",
              hint: "put them in order, each above the one before"))
        }
        last = max(last, above.value)
      }
      if !step.saysWhat {
        problems.append(
          step.place.error("the step does nothing", hint: "add \"set\", \"shed\" or \"refuse\": true"))
      }
      for (target, given) in step.settings { examine(target, given, graph, &problems) }
      for name in step.shed { examine(shed: name, graph, &problems) }
    }
  }

  private static func examine(
    _ target: Located<String>, _ given: Given, _ graph: GraphDraft, _ problems: inout Problems
  ) {
    switch graph.target(of: target.value) {
    case .noParameterNamed:
      problems.append(
        target.place.error(
          "\(Problem.quoted(target.value)) names no parameter", hint: "write \"node.parameter\""))
    case .unknownNode(let name): complain(ofNode: name, at: target.place, graph, &problems)
    case .unknownParameter(let node, let name):
      let known = graph.nodes[node].contract.map { $0.parameters.filter(\.isLive).map(\.name) } ?? []
      guard graph.nodes[node].contract != nil else { return }
      problems.append(
        target.place.error(
          "\(graph.nodes[node].type.value) has no parameter \(Problem.quoted(name))",
          hint: Spelling.hint(for: name, among: known)
            ?? (known.isEmpty ? "none of its parameters can be set while the graph runs" : cure(known))))
    case .found(let node, let parameter):
      let type = graph.nodes[node].type.value
      guard parameter.isLive else {
        let live = graph.nodes[node].contract.map { $0.parameters.filter(\.isLive).map(\.name) } ?? []
        problems.append(
          target.place.error(
            "\(Problem.quoted(parameter.name)) of \(type) cannot be set while the graph runs",
            hint: cure(live)))
        return
      }
      guard let value = given.value, (try? parameter.read(given)) == nil else { return }
      let accepted = parameter.kind.range(unit: parameter.unit) ?? parameter.kind.words
      problems.append(
        given.place.error(
          "\(Problem.quoted(parameter.name)) of \(type) is \(accepted), found \(given.shown(value))"))
    }
  }

  private static func cure(_ live: [String]) -> String {
    live.isEmpty ? "this node has none that can" : "these can: \(Wording.list(live))"
  }

  private static func examine(shed name: Located<String>, _ graph: GraphDraft, _ problems: inout Problems) {
    guard let node = graph.nodes.first(where: { $0.name == name.value }) else {
      return complain(ofNode: name.value, at: name.place, graph, &problems)
    }
    guard node.contract != nil, !node.inputs.contains(where: { !$0.links.isEmpty }) else { return }
    problems.append(
      name.place.error(
        "\(Problem.quoted(name.value)) has no linked input, so there is nothing to shed",
        hint: "name the node behind it"))
  }

  private static func complain(
    ofNode name: String, at place: Place, _ graph: GraphDraft, _ problems: inout Problems
  ) {
    let near = Spelling.hint(for: name, among: graph.nodes.map(\.name))
    problems.append(
      place.error("there is no node \(Problem.quoted(name))", hint: near ?? "add it under \"nodes\""))
  }
}
