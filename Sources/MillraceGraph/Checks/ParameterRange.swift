import MillraceCore

enum ParameterRange: Check {
  static let rule = "A parameter's value is within its range, or one of its choices."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      for mismatch in node.mismatches {
        guard let (accepted, hint) = accepted(mismatch) else { continue }
        let isItem = mismatch.kind != mismatch.parameter.kind
        let subject =
          "\(isItem ? "each item of " : "")\(Problem.quoted(mismatch.parameter.name)) of \(node.type.value)"
        problems.append(
          mismatch.place.error("\(subject) is \(accepted), found \(mismatch.found)", hint: hint))
      }
    }
  }

  private static func accepted(_ mismatch: Mismatch) -> (String, hint: String?)? {
    switch (mismatch.reason, mismatch.kind) {
    case (.range, _):
      return (mismatch.kind.range(unit: mismatch.parameter.unit) ?? mismatch.kind.words, nil)
    case (.choice, .choice(let words)):
      return (mismatch.kind.words, mismatch.word.flatMap { Spelling.hint(for: $0, among: words) })
    case (.count, .list(_, let count)):
      let items =
        count.lowerBound == count.upperBound
        ? "\(count.lowerBound)" : "\(count.lowerBound) to \(count.upperBound)"
      return ("a list of \(items) items", nil)
    default: return nil
    }
  }
}
