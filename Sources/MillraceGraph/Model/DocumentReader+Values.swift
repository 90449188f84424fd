extension DocumentReader {
  func place(_ range: Range<Int>) -> Place { Place(origin, range) }
  func place(_ node: JSONNode) -> Place { Place(origin, node.range) }

  func name(of member: JSONMember) -> Located<String> { Located(member.key, place(member.keyRange)) }

  /// Any value; nil when the key is missing.
  func value(_ member: JSONMember?) -> Located<WrittenValue>? {
    member.map { Located(WrittenValue($0.value, origin), place($0.value)) }
  }

  /// A string; nil when the key is missing, or has a value of another type, which is reported.
  mutating func text(_ member: JSONMember?) -> Located<String>? {
    guard let member else { return nil }
    if let text = member.value.string { return Located(text, place(member.value)) }
    problems.append(
      place(member.value).error(
        .wrongType, "\(Problem.quoted(member.key)) must be a string, found \(member.value.kind)"))
    return nil
  }

  /// Checks prose: a string, or an array of lines.
  mutating func expectProse(_ member: JSONMember?) {
    guard let member else { return }
    if let lines = member.value.array, lines.allSatisfy({ $0.string != nil }) { return }
    _ = text(member)
  }

  /// The members of an object; none when the key is missing, or has a value of another type, which is reported.
  mutating func members(_ member: JSONMember?) -> [JSONMember] {
    guard let member else { return [] }
    if let object = member.value.object { return object.members }
    problems.append(
      place(member.value).error(
        .wrongType, "\(Problem.quoted(member.key)) must be an object, found \(member.value.kind)"))
    return []
  }

  /// Reports the unknown keys of an object and returns whether there is one.
  @discardableResult
  mutating func refuseUnknownKeys(of object: JSONObject, known: [String], owner: String) -> Bool {
    var hasUnknown = false
    for member in object.members where !known.contains(member.key) {
      hasUnknown = true
      let nearest = Spelling.hint(for: member.key, among: known)
      problems.append(
        place(member.keyRange).error(
          .unknownKey, "unknown key \(Problem.quoted(member.key)) in \(owner)",
          hint: nearest ?? "its keys are \(Wording.list(known))"))
    }
    return hasUnknown
  }

  /// Whether the key of a node or parameter is a valid name; reports one that is not.
  mutating func hasValidName(_ member: JSONMember, of noun: String) -> Bool {
    guard let objection = Names.objection(to: member.key, of: noun) else { return true }
    problems.append(place(member.keyRange).error(.invalidName, objection, hint: Names.rule))
    return false
  }
}
