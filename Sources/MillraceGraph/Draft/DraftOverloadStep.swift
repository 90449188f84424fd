import MillraceCore

/// One step against overload, its values filled in, its names not yet looked up.
struct DraftOverloadStep {
  let place: Place
  var above: Located<Int>?
  /// `node.parameter`, and the value.
  var settings: [(target: Located<String>, given: Given)] = []
  var shed: [Located<String>] = []
  var refuses = false
  /// It says what is to be done, well or badly.
  var saysWhat = true
}

/// What a setting of a step stands for.
enum OverloadTarget {
  case found(node: Int, ParameterContract)
  case noParameterNamed
  case unknownNode(String)
  case unknownParameter(node: Int, String)
}

extension Expander {
  /// The main graph's steps. What an included graph says has the right shape and is otherwise left to whoever includes it: the
  /// machine's load is a matter of the whole.
  mutating func overload(of document: GraphDocument, in scope: Int) -> [DraftOverloadStep] {
    document.overload.map { declaration in
      var step = DraftOverloadStep(place: declaration.place)
      step.above = above(declaration.above, in: scope)
      if declaration.above == nil {
        problems.append(
          declaration.place.error("the step has no \"above\"", hint: "add \"above\": 85, in percent"))
      }
      step.settings = declaration.settings.map { ($0.name, substitute($0.value, in: scope)) }
      step.shed = declaration.shed
      step.saysWhat = declaration.saysWhat
      step.refuses = flag(declaration.refuse, "refuse", in: scope)
      return step
    }
  }

  private mutating func above(_ written: Located<WrittenValue>?, in scope: Int) -> Located<Int>? {
    guard let written, let given = plain(written, "above", in: scope), let value = given.value else {
      return nil
    }
    let range = OverloadStep.aboveRange
    if case .integer(let number)? = value.read(as: .integer), range.contains(number) {
      return Located(number, written.place)
    }
    problems.append(
      written.place.error(
        "\"above\" is \(range.lowerBound) to \(range.upperBound) percent, found \(given.shown(value))"))
    return nil
  }

  private mutating func flag(_ written: Located<WrittenValue>?, _ key: String, in scope: Int) -> Bool {
    guard let written, let given = plain(written, key, in: scope), let value = given.value else {
      return false
    }
    if case .bool(let flag)? = value.read(as: .bool) { return flag }
    problems.append(written.place.error("\"\(key)\" is true or false, found \(given.shown(value))"))
    return false
  }
}

extension GraphDraft {
  /// Looks up `node.parameter`. The node's name may have dots, a parameter's has none.
  func target(of text: String) -> OverloadTarget {
    guard let dot = text.lastIndex(of: ".") else { return .noParameterNamed }
    let (name, parameter) = (String(text[..<dot]), String(text[text.index(after: dot)...]))
    guard let node = nodes.firstIndex(where: { $0.name == name }) else { return .unknownNode(name) }
    guard let contract = nodes[node].contract?.parameter(parameter) else {
      return .unknownParameter(node: node, parameter)
    }
    return .found(node: node, contract)
  }

  /// The steps of a draft that passed all checks. `places` maps nodes of the draft to nodes of the plan.
  func overloadSteps(_ places: [Int]) -> [OverloadStep] {
    overload.compactMap { step in
      guard let above = step.above?.value else { return nil }
      let settings = step.settings.compactMap { target, given -> OverloadStep.Setting? in
        guard case .found(let node, let contract) = self.target(of: target.value),
          let value = try? contract.read(given)
        else { return nil }
        return OverloadStep.Setting(node: places[node], parameter: contract.name, value: value)
      }
      let shed = step.shed.compactMap { name in nodes.firstIndex { $0.name == name.value } }
      return OverloadStep(
        above: above, settings: settings, shed: shed.map { places[$0] }, refuses: step.refuses)
    }
  }
}
