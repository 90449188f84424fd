public import MillraceCore

extension GraphPlan {
  /// Every text that must never be shown: what came from the environment, and the values of secret parameters.
  public var secretTexts: Set<String> {
    nodes.reduce(into: hiddenTexts) { $0.formUnion($1.parameters.texts(of: $1.secrets)) }
  }

  /// What takes those texts out of others. Made anew at each call: keep it.
  public var secrets: Secrets { Secrets(secretTexts) }
}

extension GraphDraft {
  /// What the words of contracts must not hold.
  var secrets: Secrets {
    Secrets(nodes.reduce(into: environmentValues) { $0.formUnion($1.values.texts(of: $1.secrets)) })
  }
}

extension ParameterValues {
  /// The values of some parameters as they would stand in a text; of a list, those of its items.
  fileprivate func texts(of names: Set<String>) -> [String] { names.flatMap { Self.texts(self[$0]) } }

  private static func texts(_ value: ParameterValue?) -> [String] {
    switch value {
    case nil: []
    case .string(let text): [text]
    case .list(let values): values.flatMap { texts($0) }
    case .some(let value): [value.description]
    }
  }
}
