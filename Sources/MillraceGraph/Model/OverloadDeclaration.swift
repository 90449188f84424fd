/// One overload step of a graph, as written.
struct OverloadDeclaration: Sendable {
  /// The step as a whole.
  var place: Place
  /// Percent of a worker's time.
  var above: Located<WrittenValue>?
  /// Live parameters, named `node.parameter`, and their values while the step applies.
  var settings: [Argument] = []
  /// Nodes whose input is discarded.
  var shed: [Located<String>] = []
  /// Whether new sessions are refused.
  var refuse: Located<WrittenValue>?
  /// It has an action, valid or not.
  var hasAction = true
}

extension DocumentReader {
  /// The steps of `overload`.
  mutating func overload(_ member: JSONMember?) -> [OverloadDeclaration] {
    guard let member else { return [] }
    guard let items = member.value.array else {
      problems.append(
        place(member.value).error(
          .wrongType, "\"overload\" must be an array of steps, found \(member.value.kind)",
          hint: "write \"overload\": [ { \"above\": 85, \"set\": { \"enc.complexity\": 2 } } ]"))
      return []
    }
    return items.compactMap { step($0) }
  }

  private mutating func step(_ node: JSONNode) -> OverloadDeclaration? {
    guard let object = node.object else {
      problems.append(
        place(node).error(
          .wrongType, "an overload step must be an object, found \(node.kind)",
          hint: "write { \"above\": 85, \"shed\": [ \"pictures\" ] }"))
      return nil
    }
    refuseUnknownKeys(of: object, known: GraphKeys.overloadStep, owner: "an overload step")
    expectProse(object["comment"])
    var step = OverloadDeclaration(place: place(node))
    step.above = value(object["above"])
    step.settings = members(object["set"]).map { argument($0) }
    step.shed = names(object["shed"])
    step.refuse = value(object["refuse"])
    step.hasAction = ["set", "shed", "refuse"].contains { object[$0] != nil }
    return step
  }

  /// An array of names of nodes.
  private mutating func names(_ member: JSONMember?) -> [Located<String>] {
    guard let member else { return [] }
    guard let items = member.value.array, items.allSatisfy({ $0.string != nil }) else {
      problems.append(
        place(member.value).error(
          .wrongType,
          "\(Problem.quoted(member.key)) must be an array of node names, found \(member.value.kind)",
          hint: "write \(Problem.quoted(member.key)): [ \"pictures\" ]"))
      return []
    }
    return items.compactMap { item in item.string.map { Located($0, place(item)) } }
  }
}
