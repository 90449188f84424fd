import MillraceCore

/// A value that its parameter does not take.
struct Mismatch: Sendable {
  enum Reason: Sendable {
    /// Something of another type.
    case type
    /// A number outside the parameter's range.
    case range
    /// A word that is not among the choices.
    case choice
    /// A list that is too short or too long.
    case count
  }
  let parameter: ParameterContract
  let reason: Reason
  /// What the value, or the item of a list, should have been.
  let kind: ParameterContract.Kind
  let place: Place
  /// The value as problems show it.
  let found: String
  /// The word that was found where one of a few was expected.
  var word: String?
}

extension GraphDraft {
  /// Finds the final parameters of every node: what was given, as the type its contract declares, and the defaults.
  mutating func bindParameters() {
    for index in nodes.indices {
      guard let contract = nodes[index].contract else { continue }
      var values = ParameterValues()
      for parameter in contract.parameters { values[parameter.name] = parameter.defaultValue }
      for (name, given) in nodes[index].arguments {
        guard let parameter = contract.parameter(name.value) else { continue }
        guard let value = given.value else {
          nodes[index].hasUnknownValues = true
          continue
        }
        do throws(Mismatch) {
          values[name.value] = try Binding(parameter: parameter, given: given).convert(
            value, to: parameter.kind)
        } catch {
          nodes[index].mismatches.append(error)
        }
      }
      nodes[index].values = values
    }
  }
}

extension Mismatch: Error {}

extension ParameterContract {
  /// A value for this parameter out of what was given; `given.value` must be known.
  func read(_ given: Given) throws(Mismatch) -> ParameterValue {
    try Binding(parameter: self, given: given).convert(given.value ?? .null, to: kind)
  }
}

/// Reads one value as the type of one parameter.
private struct Binding {
  let parameter: ParameterContract
  let given: Given

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
        return .string(Paths.resolve(text, in: given.folder))
      }
    case .choice(let words):
      guard case .text(let text)? = value.read(as: .string) else { break }
      guard words.contains(text) else {
        var mismatch = mismatch(.choice, value, kind, place)
        mismatch.word = given.isSecret || given.holdsSecret ? nil : text
        throw mismatch
      }
      return .string(text)
    case .list(let item, let count):
      guard let items = value.items(at: given.place) else { break }
      guard count.contains(items.count) else { throw mismatch(.count, value, kind, place) }
      var values: [ParameterValue] = []
      for element in items { values.append(try convert(element.value, to: item, at: element.place)) }
      return .list(values)
    }
    throw mismatch(.type, value, kind, place)
  }

  private func mismatch(
    _ reason: Mismatch.Reason, _ value: WrittenValue, _ kind: ParameterContract.Kind, _ place: Place?
  ) -> Mismatch {
    var found = given.shown(value)
    if case .count = reason, let count = value.items(at: given.place)?.count { found = "\(count)" }
    return Mismatch(
      parameter: parameter, reason: reason, kind: kind, place: place ?? given.place, found: found)
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

  /// The items of a list; text from outside is a list with commas.
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
  /// What a value of this kind is, in words: `a whole number`, `a list of numbers`.
  var words: String {
    switch self {
    case .bool: "true or false"
    case .integer: "a whole number"
    case .number: "a number"
    case .string: "text"
    case .path: "a file path"
    case .choice(let words): Wording.oneOf(words)
    case .list(let item, _): "a list, each item \(item.words)"
    }
  }

  /// The accepted range in words, with its unit: `6000 to 510000 bit/s`; nil when there is none to speak of.
  func range(unit: String) -> String? {
    let unit = unit.isEmpty ? "" : " \(unit)"
    switch self {
    case .integer(let range): return Self.range(range, least: .min, most: .max, unit)
    case .number(let range):
      let most = Double.greatestFiniteMagnitude
      return Self.range(range, least: -most, most: most, unit)
    default: return nil
    }
  }

  private static func range<Number: Comparable>(
    _ range: ClosedRange<Number>, least: Number, most: Number, _ unit: String
  ) -> String? {
    switch (range.lowerBound <= least, range.upperBound >= most) {
    case (true, true): nil
    case (false, true): "at least \(shown(range.lowerBound))\(unit)"
    case (true, false): "at most \(shown(range.upperBound))\(unit)"
    case (false, false): "\(shown(range.lowerBound)) to \(shown(range.upperBound))\(unit)"
    }
  }

  /// Whole numbers without `.0`.
  private static func shown<Number>(_ number: Number) -> String {
    let text = "\(number)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
