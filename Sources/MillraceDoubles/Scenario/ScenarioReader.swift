internal import MillraceConformance
internal import MillraceDialog
public import MillraceGraph
public import MillraceJSON

/// Why a scenario is not valid: `file:line:column: error: …`, with a suggestion where there is one.
public struct ScenarioProblem: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
}

/// Reads the members of a scenario file. Each method returns a value of the type and range it is named for, or throws what is wrong and at
/// which line and column.
public struct ScenarioReader: Sendable {
  /// The file.
  public let document: JSONDocument
  /// The faults that the double can perform, and where; nil: any.
  let faults: [ServiceFault.Kind: Set<ServiceFault.Place>]?
  /// The reasons that the double can state when it removes a client; nil: any.
  let kickReasons: Set<KickReason>?

  init(
    parsing text: String, name: String, faults: [ServiceFault.Kind: Set<ServiceFault.Place>]?,
    kickReasons: Set<KickReason>?
  ) throws(ScenarioProblem) {
    self.faults = faults
    self.kickReasons = kickReasons
    do throws(Problem) { document = try JSONDocument.scan(SourceFile(name: name, text: text)) } catch {
      throw ScenarioProblem(description: error.description)
    }
  }

  /// A problem at a value.
  /// - Parameters:
  ///   - node: the value.
  ///   - text: what is wrong.
  ///   - hint: what to do about it.
  public func problem(_ node: JSONNode, _ text: String, hint: String? = nil) -> ScenarioProblem {
    ScenarioProblem(description: document.error(at: node, text, hint: hint).description)
  }

  /// A problem at a member that does not exist: suggests the nearest name, or lists all.
  public func unknown(_ member: JSONMember, of what: String, _ names: [String]) -> ScenarioProblem {
    let near = Spelling.nearest(to: member.key, among: names)
    let problem = document.error(
      at: member.keyRange, "unknown member \(Problem.quoted(member.key)) in \(what)",
      hint: near.map { "did you mean \"\($0)\"?" } ?? "valid members: \(names.joined(separator: ", "))")
    return ScenarioProblem(description: problem.description)
  }

  /// The members of an object.
  public func members(_ node: JSONNode, of what: String) throws(ScenarioProblem) -> [JSONMember] {
    guard let object = node.object else {
      throw problem(node, "\(what) must be an object, found \(node.kind)")
    }
    return object.members
  }

  /// The elements of an array.
  public func list(_ member: JSONMember) throws(ScenarioProblem) -> [JSONNode] {
    guard let list = member.value.array else {
      throw problem(member.value, "\"\(member.key)\" must be an array, found \(member.value.kind)")
    }
    return list
  }

  /// A string.
  public func text(_ member: JSONMember) throws(ScenarioProblem) -> String {
    try text(member.value, "\"\(member.key)\"")
  }

  /// A string that is not a member; `what` names it in the message.
  public func text(_ node: JSONNode, _ what: String) throws(ScenarioProblem) -> String {
    guard let text = node.string else { throw problem(node, "\(what) must be a string, found \(node.kind)") }
    return text
  }

  /// True or false.
  public func bool(_ member: JSONMember) throws(ScenarioProblem) -> Bool {
    guard let bool = member.value.bool else {
      throw problem(member.value, "\"\(member.key)\" must be true or false, found \(member.value.kind)")
    }
    return bool
  }

  /// An integer in a range.
  public func integer(_ member: JSONMember, _ range: ClosedRange<Int>) throws(ScenarioProblem) -> Int {
    guard let number = member.value.integer.flatMap({ Int(exactly: $0) }), range.contains(number) else {
      throw problem(
        member.value,
        "\"\(member.key)\" must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// A number in a range.
  public func number(_ member: JSONMember, _ range: ClosedRange<Double>) throws(ScenarioProblem) -> Double {
    guard let number = member.value.double, range.contains(number) else {
      throw problem(
        member.value,
        "\"\(member.key)\" must be a number from \(Self.digits(range.lowerBound)) to \(Self.digits(range.upperBound))"
      )
    }
    return number
  }

  /// Whole numbers without a decimal point.
  private static func digits(_ number: Double) -> String {
    Int(exactly: number).map(String.init) ?? "\(number)"
  }

  /// One of the words of an enumeration; suggests the nearest.
  public func word<Word: RawRepresentable & CaseIterable>(
    _ member: JSONMember
  ) throws(ScenarioProblem) -> Word where Word.RawValue == String {
    let words = Word.allCases.map(\.rawValue)
    guard let word = member.value.string.flatMap(Word.init(rawValue:)) else {
      let near = member.value.string.flatMap { Spelling.nearest(to: $0, among: words) }
      throw problem(
        member.value, "\"\(member.key)\" must be one of \(words.joined(separator: ", "))",
        hint: near.map { "did you mean \"\($0)\"?" })
    }
    return word
  }

  /// Any JSON value.
  public func value(_ node: JSONNode) throws(ScenarioProblem) -> JSONValue {
    do throws(JSONProblem) {
      return try JSONValue(parsing: Array(document.source.bytes[node.range]))
    } catch {
      throw problem(node, error.description)
    }
  }
}
