internal import MillraceCore
internal import MillraceGraph

/// Checks requests about a node's parameters against its contract, before anything is sent.
enum LiveCheck {
  /// The index of a parameter of the node's contract.
  static func index(_ node: GraphPlan.Node, _ name: String) throws(ControlProblem) -> Int {
    if let index = node.contract.parameterIndex(name) { return index }
    let near = Spelling.nearest(to: name, among: node.contract.parameters.map(\.name))
    throw ControlProblem(
      "\"\(node.name)\" (\(node.contract.type)) has no parameter \"\(name)\""
        + (near.map { "; did you mean \"\($0)\"?" } ?? ""), .unknownParameter)
  }

  /// The index of a parameter that can be set while the graph runs.
  static func liveIndex(_ node: GraphPlan.Node, _ name: String) throws(ControlProblem) -> Int {
    let index = try index(node, name)
    guard !node.contract.parameters[index].isLive else { return index }
    let live = node.contract.parameters.filter(\.isLive).map(\.name)
    let cure =
      live.isEmpty ? "it has no live parameter" : "its live parameters are \(live.joined(separator: ", "))"
    throw ControlProblem(
      "\"\(name)\" of \"\(node.name)\" cannot be set while the graph runs; \(cure)", .notLive)
  }

  /// The index of a live parameter that can be ramped.
  static func rampIndex(_ node: GraphPlan.Node, _ name: String) throws(ControlProblem) -> Int {
    let index = try liveIndex(node, name)
    if case .number = node.contract.parameters[index].kind { return index }
    throw ControlProblem(
      "\"\(name)\" of \"\(node.name)\" cannot be ramped, since it takes \(describe(node.contract.parameters[index])); use set",
      .notNumber)
  }

  /// The parameter's index and the value as the node receives it.
  static func check(
    _ node: GraphPlan.Node, _ name: String, _ value: ParameterValue
  ) throws(ControlProblem) -> (index: Int, value: LiveValue) {
    let index = try liveIndex(node, name)
    let parameter = node.contract.parameters[index]
    guard let live = convert(value, parameter.kind) else {
      let isSecret = parameter.isSecret || node.secrets.contains(name)
      throw ControlProblem(
        "\"\(name)\" of \"\(node.name)\" cannot be \(isSecret ? "the given value" : "\(value)"); it takes \(describe(parameter))",
        .wrongValue)
    }
    return (index, live)
  }

  private static func convert(_ value: ParameterValue, _ kind: ParameterContract.Kind) -> LiveValue? {
    switch (kind, value) {
    case (.bool, .bool(let value)): .bool(value)
    case (.integer(let range), .integer(let value)) where range.contains(value): .integer(value)
    case (.number(let range), let value):
      value.asNumber.flatMap { range.contains($0) ? .number($0) : nil }
    case (.choice(let words), .string(let word)): words.firstIndex(of: word).map { .choice($0) }
    case (.string, .string(let text)), (.path, .string(let text)): .string(text)
    default: nil
    }
  }

  private static func describe(_ parameter: ParameterContract) -> String {
    let unit = parameter.unit.isEmpty ? "" : " \(parameter.unit)"
    return switch parameter.kind {
    case .bool: "true or false"
    case .integer(let range): "an integer from \(range.lowerBound) to \(range.upperBound)\(unit)"
    case .number(let range): "a number from \(range.lowerBound) to \(range.upperBound)\(unit)"
    case .choice(let words): "one of \(words.joined(separator: ", "))"
    case .string, .path: "a string"
    case .list: "a list"
    }
  }
}
