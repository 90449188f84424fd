import MillraceCore

enum ParameterType: Check {
  static let rule = "A parameter's value has the type that its contract declares."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      for mismatch in node.mismatches {
        guard case .type = mismatch.reason else { continue }
        let requirement = mismatch.kind.requirement(unit: mismatch.parameter.unit)
        problems.append(
          mismatch.place.error(
            .wrongParameterType,
            "\(mismatch.subject) of \(node.type.value) must be \(requirement), found \(mismatch.found)",
            hint: cure(mismatch)))
      }
    }
  }

  private static func cure(_ mismatch: Mismatch) -> String? {
    if case .string = mismatch.kind { return mismatch.number.map { "write \"\($0)\"" } }
    guard case .path = mismatch.kind, mismatch.found.hasPrefix("\"") else { return nil }
    return WrittenValue.pathCure
  }
}
