/// Why JSON is not a valid event or command of a dialogue. Names members, never their content.
public struct DialogFormProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong.
  public let text: String
  public var description: String { text }

  init(_ text: String) { self.text = text }
}

/// Reads the members of an event or command.
struct DialogForm {
  let json: JSONValue
  let name: String

  init(_ json: JSONValue, of name: String) {
    self.json = json
    self.name = name
  }

  func problem(_ text: String) -> DialogFormProblem { DialogFormProblem("\"\(name)\": \(text)") }

  func string(_ member: String) throws(DialogFormProblem) -> String {
    guard let value = json[member]?.string else { throw problem("missing string \"\(member)\"") }
    return value
  }

  func bool(_ member: String) throws(DialogFormProblem) -> Bool {
    guard let value = json[member]?.bool else { throw problem("\"\(member)\" must be true or false") }
    return value
  }

  func integer(_ member: String) throws(DialogFormProblem) -> Int {
    guard let value = json[member]?.integer else { throw problem("missing integer \"\(member)\"") }
    return value
  }

  func word<Word: RawRepresentable & CaseIterable>(
    _ member: String
  ) throws(DialogFormProblem) -> Word where Word.RawValue == String {
    guard let value = json[member]?.string.flatMap(Word.init(rawValue:)) else {
      let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw problem("\"\(member)\" must be one of \(words)")
    }
    return value
  }
}
