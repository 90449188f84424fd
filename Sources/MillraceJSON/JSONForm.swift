/// Why a JSON value does not have the expected form. Names members, never their content, which may be what a user said.
public struct JSONFormProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// The member, such as `payload.output.state`; empty: the value itself.
  public let path: String
  /// What is wrong with it, such as `must be a string`.
  public let text: String

  /// Creates a problem; `text` continues a sentence that begins with the path.
  public init(_ path: String, _ text: String) {
    self.path = path
    self.text = text
  }

  public var description: String { path.isEmpty ? text : "\"\(path)\" \(text)" }
}

/// Reads the members of a JSON object, and reports the path of one that is missing or has the wrong type.
///
/// A number in a string is not a number, and `null` counts as missing. Unknown members are ignored. Cheap to copy; any thread.
public struct JSONForm: Sendable, Hashable {
  /// The value whose members are read.
  public let json: JSONValue
  /// Where it is in the message; empty for the message itself.
  public let path: String

  /// A form of a value at a path.
  public init(_ json: JSONValue, at path: String = "") {
    self.json = json
    self.path = path
  }

  /// The path of a member.
  public func path(of member: String) -> String { path.isEmpty ? member : "\(path).\(member)" }

  /// A problem with a member; see `JSONFormProblem`.
  public func problem(_ member: String, _ text: String) -> JSONFormProblem {
    JSONFormProblem(path(of: member), text)
  }

  /// The value of a member; nil when it is missing or `null`.
  public subscript(member: String) -> JSONValue? { json[member].flatMap { $0.isNull ? nil : $0 } }

  /// A form of a member, which must be an object.
  public func object(_ member: String) throws(JSONFormProblem) -> JSONForm {
    guard let value = json[member], value.members != nil else { throw problem(member, "must be an object") }
    return JSONForm(value, at: path(of: member))
  }

  /// Forms of the entries of a member, which must be an array.
  public func array(_ member: String) throws(JSONFormProblem) -> [JSONForm] {
    guard let values = json[member]?.array else { throw problem(member, "must be an array") }
    return values.enumerated().map { JSONForm($1, at: "\(path(of: member))[\($0)]") }
  }

  /// The string of a member.
  public func string(_ member: String) throws(JSONFormProblem) -> String {
    guard let value = json[member]?.string else { throw problem(member, "must be a string") }
    return value
  }

  /// The Boolean of a member.
  public func bool(_ member: String) throws(JSONFormProblem) -> Bool {
    guard let value = json[member]?.bool else { throw problem(member, "must be true or false") }
    return value
  }

  /// The integer of a member; `3.0` is one.
  public func integer(_ member: String) throws(JSONFormProblem) -> Int {
    guard let value = json[member]?.integer else { throw problem(member, "must be an integer") }
    return value
  }

  /// The number of a member.
  public func number(_ member: String) throws(JSONFormProblem) -> Double {
    guard let value = json[member]?.double else { throw problem(member, "must be a number") }
    return value
  }

  /// The string of a member, which must be one of a fixed set.
  public func word<Word: RawRepresentable & CaseIterable>(
    _ member: String
  ) throws(JSONFormProblem) -> Word where Word.RawValue == String {
    guard let value = json[member]?.string.flatMap(Word.init(rawValue:)) else {
      let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw problem(member, "must be one of \(words)")
    }
    return value
  }
}
