/// One step of a graph's ladder against overload, as written.
struct OverloadDeclaration: Sendable {
  /// The step as a whole.
  var place: Place
  /// Percent of a worker's time.
  var above: Located<WrittenValue>?
  /// Live parameters, named `node.parameter`, and their values while the step is in force.
  var settings: [Argument] = []
  /// Nodes whose input is thrown away.
  var shed: [Located<String>] = []
  /// Whether new sessions are refused.
  var refuse: Located<WrittenValue>?
  /// It says what is to be done, well or badly.
  var saysWhat = true
}

extension DocumentReader {
  /// The steps of `overload`.
  mutating func overload(_ member: JSONMember?) -> [OverloadDeclaration] {
    guard let member else { return [] }
    guard let items = member.value.array else {
      problems.append(
        place(member.value).error(
          "\"overload\" is a list of steps, found \(member.value.kind)",
          hint: "write \"overload\": [ { \"above\": 85, \"set\": { \"enc.complexity\": 2 } } ]"))
      return []
    }
    return items.compactMap { step($0) }
  }

  private mutating func step(_ node: JSONNode) -> OverloadDeclaration? {
    guard let object = node.object else {
      problems.append(
        place(node).error(
          "a step of \"overload\" is an object, found \(node.kind)",
          hint: "write { \"above\": 85, \"shed\": [ \"pictures\" ] }"))
      return nil
    }
    refuseUnknownKeys(of: object, known: GraphKeys.overloadStep, owner: "a step of \"overload\"")
    expectProse(object["comment"])
    var step = OverloadDeclaration(place: place(node))
    step.above = value(object["above"])
    step.settings = members(object["set"]).map { argument($0) }
    step.shed = names(object["shed"])
    step.refuse = value(object["refuse"])
    step.saysWhat = ["set", "shed", "refuse"].contains { object[$0] != nil }
    return step
  }

  /// A list of names.
  private mutating func names(_ member: JSONMember?) -> [Located<String>] {
    guard let member else { return [] }
    guard let items = member.value.array, items.allSatisfy({ $0.string != nil }) else {
      problems.append(
        place(member.value).error(
          "\(Problem.quoted(member.key)) is a list of names of nodes, found \(member.value.kind)",
          hint: "write \(Problem.quoted(member.key)): [ \"pictures\" ]"))
      return []
    }
    return items.compactMap { item in item.string.map { Located($0, place(item)) } }
  }
}
