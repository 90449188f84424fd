import MillraceCore

enum MissingParameter: Check {
  static let rule = "A node sets every parameter that its type requires."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard let contract = node.contract else { continue }
      for parameter in contract.parameters where parameter.isRequired {
        let isGiven = node.arguments.contains { $0.name.value == parameter.name }
        if isGiven || misspelled(of: node, contract).contains(parameter.name) { continue }
        problems.append(
          node.namePlace.error(
            .missingParameter,
            "\(contract.type) requires \(Problem.quoted(parameter.name)) (\(Wording.phrase(parameter.text)))",
            hint: "add \(Problem.quoted(parameter.name)): \(example(of: parameter.kind))"))
      }
    }
  }

  /// The parameters that unknown names were probably meant for. They are not missing, only misspelled, which `UnknownParameter` reports.
  private static func misspelled(of node: DraftNode, _ contract: NodeContract) -> Set<String> {
    let known = contract.parameters.map(\.name)
    let unknown = node.arguments.map(\.name.value).filter { !known.contains($0) }
    return Set(unknown.compactMap { Spelling.nearest(to: $0, among: known) })
  }

  private static func example(of kind: ParameterContract.Kind) -> String {
    switch kind {
    case .bool: "true"
    case .integer(let range): "\(max(range.lowerBound, min(range.upperBound, 1)))"
    case .number(let range): "\(max(range.lowerBound, min(range.upperBound, 1)))"
    case .string, .path: "\"…\""
    case .choice(let words): Problem.quoted(words.first ?? "")
    case .list: "[ … ]"
    }
  }
}
