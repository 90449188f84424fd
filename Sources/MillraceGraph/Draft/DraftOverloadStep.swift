import MillraceCore

/// One overload step: its values are expanded, its names not yet resolved.
struct DraftOverloadStep {
  let place: Place
  var above: Located<Int>?
  /// `node.parameter`, and the value.
  var settings: [(target: Located<String>, value: ExpandedValue)] = []
  var shed: [Located<String>] = []
  var refuses = false
  /// It has an action, valid or not.
  var hasAction = true
}

/// What the name of a setting resolves to.
enum OverloadTarget {
  case found(node: Int, ParameterContract)
  case noParameterNamed
  case unknownNode(String)
  case unknownParameter(node: Int, String)
}

extension Expander {
  /// The overload steps of a graph. Those of an included graph are only checked for their shape: load is handled for the graph as a whole.
  mutating func overload(of document: GraphDocument, in scope: Int) -> [DraftOverloadStep] {
    document.overload.map { declaration in
      var step = DraftOverloadStep(place: declaration.place)
      step.above = above(declaration.above, in: scope)
      if declaration.above == nil {
        problems.append(
          declaration.place.error(
            .missingKey, "the overload step has no \"above\"", hint: "add \"above\": 85 (percent)"))
      }
      step.settings = declaration.settings.map { ($0.name, substitute($0.value, in: scope)) }
      step.shed = declaration.shed
      step.hasAction = declaration.hasAction
      step.refuses = flag(declaration.refuse, "refuse", in: scope)
      return step
    }
  }

  private mutating func above(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Int>? {
    guard let written, let expanded = plain(written, "above", in: scope), let value = expanded.value else {
      return nil
    }
    let range = OverloadStep.aboveRange
    if case .integer(let number)? = value.read(as: .integer), range.contains(number) {
      return Located(number, written.place)
    }
    problems.append(
      written.place.error(
        .invalidValue,
        "\"above\" must be \(range.lowerBound) to \(range.upperBound) percent, found \(expanded.shown(value))"
      ))
    return nil
  }

  private mutating func flag(_ written: Located<WrittenValue>?, _ key: String, in scope: Int) -> Bool {
    guard let written, let expanded = plain(written, key, in: scope), let value = expanded.value else {
      return false
    }
    if case .bool(let flag)? = value.read(as: .bool) { return flag }
    problems.append(
      written.place.error(.invalidValue, "\"\(key)\" must be true or false, found \(expanded.shown(value))"))
    return false
  }
}

extension GraphDraft {
  /// Resolves `node.parameter`. The name of a node may contain dots, that of a parameter may not.
  func target(of text: String) -> OverloadTarget {
    guard let dot = text.lastIndex(of: ".") else { return .noParameterNamed }
    let (name, parameter) = (String(text[..<dot]), String(text[text.index(after: dot)...]))
    guard let node = nodes.firstIndex(where: { $0.name == name }) else { return .unknownNode(name) }
    guard let contract = nodes[node].contract?.parameter(parameter) else {
      return .unknownParameter(node: node, parameter)
    }
    return .found(node: node, contract)
  }

  /// The overload steps of a draft that passed all checks. `places` maps nodes of the draft to nodes of the plan.
  func overloadSteps(_ places: [Int]) -> [OverloadStep] {
    overload.compactMap { step in
      guard let above = step.above?.value else { return nil }
      let settings = step.settings.compactMap { target, value -> OverloadStep.Setting? in
        guard case .found(let node, let contract) = self.target(of: target.value),
          let value = try? contract.read(value)
        else { return nil }
        return OverloadStep.Setting(node: places[node], parameter: contract.name, value: value)
      }
      let shed = step.shed.compactMap { name in nodes.firstIndex { $0.name == name.value } }
      return OverloadStep(
        above: above, settings: settings, shed: shed.map { places[$0] }, refuses: step.refuses)
    }
  }
}
