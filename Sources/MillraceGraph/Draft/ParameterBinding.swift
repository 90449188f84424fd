import MillraceCore

/// A value that its parameter does not accept.
struct Mismatch: Error {
  enum Reason: Sendable {
    /// It has another type.
    case type
    /// A number outside the parameter's range.
    case range
    /// A string that is not among the choices.
    case choice
    /// A list that is too short or too long.
    case count
  }
  let parameter: ParameterContract
  let reason: Reason
  /// What the value, or the item of a list, must be.
  let kind: ParameterContract.Kind
  let place: Place
  /// The value as problems show it.
  let found: String
  /// The string that is not among the choices; nil when it is secret.
  var word: String?
  /// The integer that stands where a string belongs; nil when it is secret, or none.
  var number: Int?

  /// What problems call the value: `"gains"`, or `each item of "gains"`.
  var subject: String {
    (kind == parameter.kind ? "" : "each item of ") + Problem.quoted(parameter.name)
  }
}

extension GraphDraft {
  /// Finds the final parameters of every node: the values it sets, converted to the types of its contract, and the defaults.
  mutating func bindParameters() {
    for index in nodes.indices {
      guard let contract = nodes[index].contract else { continue }
      var values = ParameterValues()
      for parameter in contract.parameters { values[parameter.name] = parameter.defaultValue }
      for (name, argument) in nodes[index].arguments {
        guard let parameter = contract.parameter(name.value) else { continue }
        guard argument.value != nil else {
          nodes[index].hasUnknownValues = true
          continue
        }
        do throws(Mismatch) {
          values[name.value] = try parameter.read(argument)
        } catch {
          nodes[index].mismatches.append(error)
        }
      }
      nodes[index].values = values
    }
  }
}

extension ParameterContract {
  /// Converts a value to the type of this parameter; its value must be known.
  func read(_ value: ExpandedValue) throws(Mismatch) -> ParameterValue {
    try ValueReader(parameter: self, source: value).convert(value.value ?? .null, to: kind)
  }
}

/// Converts one value to the type of one parameter.
private struct ValueReader {
  let parameter: ParameterContract
  let source: ExpandedValue

  func convert(
    _ value: WrittenValue, to kind: ParameterContract.Kind, at place: Place? = nil
  ) throws(Mismatch) -> ParameterValue {
    switch kind {
    case .bool:
      if case .bool(let flag)? = value.read(as: .bool) { return .bool(flag) }
    case .integer(let range):
      guard case .integer(let number)? = value.read(as: .integer) else { break }
      guard range.contains(number) else { throw mismatch(.range, value, kind, place) }
      return .integer(number)
    case .number(let range):
      guard let number = value.read(as: .number)?.asDouble else { break }
      guard range.contains(number) else { throw mismatch(.range, value, kind, place) }
      return .number(number)
    case .string:
      if case .text(let text)? = value.read(as: .string) { return .string(text) }
    case .path:
      if case .text(let text)? = value.read(as: .path) {
        return .string(Paths.resolve(text, in: source.folder))
      }
    case .choice(let choices):
      guard case .text(let text)? = value.read(as: .string) else { break }
      guard choices.contains(text) else {
        var mismatch = mismatch(.choice, value, kind, place)
        mismatch.word = source.isSecret || source.holdsSecret ? nil : text
        throw mismatch
      }
      return .string(text)
    case .list(let item, let count):
      guard let items = value.items(at: source.place) else { break }
      guard count.contains(items.count) else { throw mismatch(.count, value, kind, place) }
      var values: [ParameterValue] = []
      for element in items { values.append(try convert(element.value, to: item, at: element.place)) }
      return .list(values)
    }
    var problem = mismatch(.type, value, kind, place)
    if case .integer(let number) = value, !source.isSecret, !source.holdsSecret { problem.number = number }
    throw problem
  }

  private func mismatch(
    _ reason: Mismatch.Reason, _ value: WrittenValue, _ kind: ParameterContract.Kind, _ place: Place?
  ) -> Mismatch {
    var found = source.shown(value)
    if case .count = reason, let count = value.items(at: source.place)?.count { found = "\(count)" }
    return Mismatch(
      parameter: parameter, reason: reason, kind: kind, place: place ?? source.place, found: found)
  }
}

extension WrittenValue {
  fileprivate var asDouble: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }

  /// The items of a list; text from outside the graph is a list separated by commas.
  fileprivate func items(at place: Place) -> [Located<WrittenValue>]? {
    switch self {
    case .list(let items): items
    case .outside(let text):
      text.isEmpty ? [] : text.split(separator: ",").map { Located(.outside(trimmed($0)), place) }
    default: nil
    }
  }

  private func trimmed(_ text: Substring) -> String {
    var text = text
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}

extension ParameterContract.Kind {
  /// What a value of this kind must be: `an integer from 8000 to 192000 Hz`, `a list of strings`.
  func requirement(unit: String) -> String {
    switch self {
    case .bool: "true or false"
    case .integer: "an integer\(qualification(unit))"
    case .number: "a number\(qualification(unit))"
    case .string: "a string"
    case .path: "a file path"
    case .choice(let choices): Wording.oneOf(choices)
    case .list(let item, _): "a list of \(item.name(plural: true))"
    }
  }

  private func qualification(_ unit: String) -> String {
    guard let bounds = limits(unit: unit) else { return unit.isEmpty ? "" : " (\(unit))" }
    return bounds.hasPrefix("at ") ? ", \(bounds)" : " from \(bounds)"
  }
}
