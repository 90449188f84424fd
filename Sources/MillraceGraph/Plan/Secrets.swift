public import MillraceCore

extension GraphPlan {
  /// Every text that must never be shown: values from the environment, and the secret parts of parameters.
  public var secretTexts: Set<String> {
    var texts = nodes.reduce(into: hiddenTexts) {
      $0.formUnion($1.parameters.hiddenTexts($1.contract, $1.secrets))
    }
    for setting in overload.flatMap(\.settings) {
      let node = nodes[setting.node]
      guard let parameter = node.contract.parameter(setting.parameter) else { continue }
      texts.formUnion(parameter.hiddenTexts(of: setting.value))
    }
    return texts
  }

  /// Redacts the secret texts. Built at each call, unless it is `borrowedSecrets`: keep it.
  public var secrets: Secrets { borrowedSecrets ?? Secrets(secretTexts) }
}

extension GraphPlan.Node {
  /// Whether a parameter's value is never shown at all.
  public func isSecret(_ parameter: String) -> Bool {
    secrets.contains(parameter) || contract.parameter(parameter)?.secrecy == .whole
  }
}

extension GraphDraft {
  /// Redacts the secrets of the graph in texts of its contracts.
  var secrets: Secrets { Secrets(secretTexts) }

  /// The same without numbers, which also occur in messages for other reasons, such as the rate of a link.
  var nonNumericSecrets: Secrets { Secrets(secretTexts.filter { Double($0) == nil }) }

  /// Names of parameters are left out: a value that is one hides nothing, and messages need them.
  private var secretTexts: Set<String> {
    allSecretTexts.subtracting(contracts.values.flatMap { $0.parameters.map(\.name) })
  }

  private var allSecretTexts: Set<String> {
    nodes.reduce(into: environmentValues) { texts, node in
      // A value of the wrong type is replaced by the default, which is not secret.
      let bound = node.secrets.subtracting(node.mismatches.map(\.parameter.name))
      if let contract = node.contract { texts.formUnion(node.values.hiddenTexts(contract, bound)) }
      // Values of the wrong type, of unknown parameters and of unknown node types count too.
      for (name, given) in node.arguments {
        let parameter = node.contract?.parameter(name.value)
        let secrecy =
          node.secrets.contains(name.value)
          ? .whole : parameter?.secrecy ?? ParameterContract.Secrecy.guessed(name.value)
        let isBound = parameter != nil && !node.mismatches.contains { $0.parameter.name == name.value }
        guard secrecy != .none, !isBound else { continue }
        for text in given.value?.texts ?? [] { texts.formUnion(secrecy.hiddenTexts(of: text)) }
      }
    }
  }
}

extension ParameterValues {
  /// The texts that must not be shown: all of some parameters, of the others what their contract declares secret.
  fileprivate func hiddenTexts(_ contract: NodeContract, _ secrets: Set<String>) -> Set<String> {
    contract.parameters.reduce(into: Set(secrets.flatMap { self[$0]?.texts ?? [] })) { texts, parameter in
      guard parameter.isSecret, let value = self[parameter.name] else { return }
      texts.formUnion(parameter.hiddenTexts(of: value))
    }
  }
}

extension WrittenValue {
  /// Its strings and numbers; of a list, those of its items.
  fileprivate var texts: [String] {
    switch self {
    case .list(let items): items.flatMap(\.value.texts)
    case .bool, .null, .object: []
    default: insideText.map { [$0] } ?? []
    }
  }
}
