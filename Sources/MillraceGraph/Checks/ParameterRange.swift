import MillraceCore

enum ParameterRange: Check {
  static let rule = "A parameter's value is within its range, or one of its choices."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      for mismatch in node.mismatches {
        guard let (requirement, hint) = requirement(of: mismatch) else { continue }
        problems.append(
          mismatch.place.error(
            .parameterOutOfRange,
            "\(mismatch.subject) of \(node.type.value) must \(requirement), found \(mismatch.found)",
            hint: hint))
      }
    }
  }

  private static func requirement(of mismatch: Mismatch) -> (String, hint: String?)? {
    switch (mismatch.reason, mismatch.kind) {
    case (.range, _):
      let unit = mismatch.parameter.unit
      return ("be \(mismatch.kind.limits(unit: unit) ?? mismatch.kind.requirement(unit: unit))", nil)
    case (.choice, .choice(let choices)):
      let hint = mismatch.word.flatMap { Spelling.hint(for: $0, among: choices) }
      return ("be \(Wording.oneOf(choices))", hint)
    case (.count, .list(_, let count)):
      let items =
        count.lowerBound == count.upperBound
        ? "\(count.lowerBound)" : "\(count.lowerBound) to \(count.upperBound)"
      return ("have \(items) items", nil)
    default: return nil
    }
  }
}
