extension DocumentReader {
  func place(_ range: Range<Int>) -> Place { Place(origin, range) }
  func place(_ node: JSONNode) -> Place { Place(origin, node.range) }

  func name(of member: JSONMember) -> Located<String> { Located(member.key, place(member.keyRange)) }

  /// Any value, unless the key is missing.
  func value(_ member: JSONMember?) -> Located<WrittenValue>? {
    member.map { Located(WrittenValue($0.value, origin), place($0.value)) }
  }

  /// A text; nil when the key is missing or, with a problem, when it holds something else.
  mutating func text(_ member: JSONMember?) -> Located<String>? {
    guard let member else { return nil }
    if let text = member.value.string { return Located(text, place(member.value)) }
    problems.append(
      place(member.value).error("\(Problem.quoted(member.key)) takes text, found \(member.value.kind)"))
    return nil
  }

  /// Prose for people: a text, or a list of lines.
  mutating func expectProse(_ member: JSONMember?) {
    guard let member else { return }
    if let lines = member.value.array, lines.allSatisfy({ $0.string != nil }) { return }
    _ = text(member)
  }

  /// The members of an object; none when the key is missing or, with a problem, when it holds something else.
  mutating func members(_ member: JSONMember?) -> [JSONMember] {
    guard let member else { return [] }
    if let object = member.value.object { return object.members }
    problems.append(
      place(member.value).error("\(Problem.quoted(member.key)) is an object, found \(member.value.kind)"))
    return []
  }

  /// Answers whether there was any.
  @discardableResult
  mutating func refuseUnknownKeys(of object: JSONObject, known: [String], owner: String) -> Bool {
    var hasUnknown = false
    for member in object.members where !known.contains(member.key) {
      hasUnknown = true
      let nearest = Spelling.hint(for: member.key, among: known)
      problems.append(
        place(member.keyRange).error(
          "\(owner) has no key \(Problem.quoted(member.key))",
          hint: nearest ?? "its keys are \(Wording.list(known))"))
    }
    return hasUnknown
  }

  mutating func hasGoodName(_ member: JSONMember, of what: String) -> Bool {
    guard let objection = Names.objection(to: member.key, of: what) else { return true }
    problems.append(place(member.keyRange).error(objection, hint: Names.rule))
    return false
  }
}
