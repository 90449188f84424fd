import MillraceCore

enum ParameterType: Check {
  static let rule = "A parameter's value is of the type its contract declares."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      for mismatch in node.mismatches {
        guard case .type = mismatch.reason else { continue }
        let parameter = mismatch.parameter
        let isItem = mismatch.kind != parameter.kind
        let subject = Problem.quoted(parameter.name) + " of \(node.type.value)"
        let unit = parameter.unit.isEmpty ? "" : " (\(parameter.unit))"
        let range = mismatch.kind.range(unit: parameter.unit).map { ", \($0)" } ?? unit
        problems.append(
          mismatch.place.error(
            "\(isItem ? "each item of " : "")\(subject) is \(mismatch.kind.words)\(range), found \(mismatch.found)",
            hint: cure(mismatch)))
      }
    }
  }

  private static func cure(_ mismatch: Mismatch) -> String? {
    guard case .path = mismatch.kind, mismatch.found.hasPrefix("\"") else { return nil }
    return WrittenValue.pathCure
  }
}
