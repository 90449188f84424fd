internal import MillraceCore
internal import MillraceGraph

/// Checks a value for a live parameter against the node's contract, before it is sent.
enum LiveParameter {
  /// The parameter's index and the value as the node gets it.
  static func check(
    _ node: GraphPlan.Node, _ name: String, _ value: ParameterValue
  ) throws(ControlProblem) -> (index: Int, value: LiveValue) {
    let contract = node.contract
    guard let index = contract.parameterIndex(name) else {
      let near = Spelling.nearest(to: name, among: contract.parameters.map(\.name))
      throw ControlProblem(
        "\"\(node.name)\" (\(contract.type)) has no parameter \"\(name)\""
          + (near.map { "; did you mean \"\($0)\"?" } ?? ""))
    }
    let parameter = contract.parameters[index]
    guard parameter.isLive else {
      let live = contract.parameters.filter(\.isLive).map(\.name)
      let cure = live.isEmpty ? "this node has none that can" : "these can: \(live.joined(separator: ", "))"
      throw ControlProblem("\"\(name)\" of \"\(node.name)\" cannot be set while the graph runs; \(cure)")
    }
    guard let live = convert(value, parameter.kind) else {
      let isSecret = parameter.isSecret || node.secrets.contains(name)
      throw ControlProblem(
        "\"\(name)\" of \"\(node.name)\" cannot be \(isSecret ? "what was given" : "\(value)"); it takes \(describe(parameter))"
      )
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
    case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)\(unit)"
    case .number(let range): "a number from \(range.lowerBound) to \(range.upperBound)\(unit)"
    case .choice(let words): "one of \(words.joined(separator: ", "))"
    case .string, .path: "a string"
    case .list: "a list"
    }
  }
}
