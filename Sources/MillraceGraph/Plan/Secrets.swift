public import MillraceCore

extension GraphPlan {
  /// Every text that must never be shown: what came from the environment, and what is secret of the values of parameters.
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

  /// What takes those texts out of others. Made anew at each call, unless it is another graph's: keep it.
  public var secrets: Secrets { borrowedSecrets ?? Secrets(secretTexts) }
}

extension GraphPlan.Node {
  /// True when nothing of a parameter's value is ever shown.
  public func isSecret(_ parameter: String) -> Bool {
    secrets.contains(parameter) || contract.parameter(parameter)?.secrecy == .whole
  }
}

extension GraphDraft {
  /// What the words of checks and contracts must not hold.
  var secrets: Secrets { Secrets(secretTexts) }

  /// The same without numbers, which are as often what a value has led to: the rate of a link.
  var wordSecrets: Secrets { Secrets(secretTexts.filter { Double($0) == nil }) }

  private var secretTexts: Set<String> {
    nodes.reduce(into: environmentValues) { texts, node in
      // In the place of a value of a wrong type stands the default, which is no secret.
      let bound = node.secrets.subtracting(node.mismatches.map(\.parameter.name))
      if let contract = node.contract { texts.formUnion(node.values.hiddenTexts(contract, bound)) }
      // Also what is of a wrong type, or of a parameter or a node that there is not.
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
  /// What must not be shown: of some parameters all, of the others what their contract says.
  fileprivate func hiddenTexts(_ contract: NodeContract, _ secrets: Set<String>) -> Set<String> {
    contract.parameters.reduce(into: Set(secrets.flatMap { self[$0]?.texts ?? [] })) { texts, parameter in
      guard parameter.isSecret, let value = self[parameter.name] else { return }
      texts.formUnion(parameter.hiddenTexts(of: value))
    }
  }
}

extension WrittenValue {
  /// Its texts and numbers; of a list, those of its items.
  fileprivate var texts: [String] {
    switch self {
    case .list(let items): items.flatMap(\.value.texts)
    case .bool, .null, .object: []
    default: insideText.map { [$0] } ?? []
    }
  }
}
