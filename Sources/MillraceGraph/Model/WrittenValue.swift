import MillraceCore

/// A value as written in a graph, before its type is known.
enum WrittenValue: Sendable {
  case null
  case bool(Bool)
  case integer(Int)
  case number(Double)
  case text(String)
  /// Text from outside the graph, such as `--set`, which may be a number or a list.
  case outside(String)
  case list([Located<WrittenValue>])
  /// An object, which no parameter accepts.
  case object

  init(_ node: JSONNode, _ origin: Place.Origin) {
    switch node.value {
    case .null: self = .null
    case .bool(let value): self = .bool(value)
    case .string(let value): self = .text(value)
    case .number(let number):
      // In any notation: `1e3` is the integer 1000.
      self = number.integer.map { .integer(Int($0)) } ?? .number(number.double)
    case .array(let items):
      self = .list(items.map { Located(WrittenValue($0, origin), Place(origin, $0.range)) })
    case .object: self = .object
    }
  }

  init(_ value: ParameterValue, _ place: Place) {
    switch value {
    case .bool(let value): self = .bool(value)
    case .integer(let value): self = .integer(value)
    case .number(let value): self = .number(value)
    case .string(let value): self = .text(value)
    case .list(let values): self = .list(values.map { Located(WrittenValue($0, place), place) })
    }
  }

  /// The value as problems show it: strings in quotes, lists and objects by their kind.
  var shown: String {
    switch self {
    case .null: "null"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .text(let value), .outside(let value): Problem.quoted(value)
    case .list: "a list"
    case .object: "an object"
    }
  }

  /// True for a string with a placeholder.
  var isReference: Bool {
    if case .text(let text) = self { text.contains("${") } else { false }
  }

  /// The value as part of a longer string; nil for `null`, a list and an object.
  var insideText: String? {
    switch self {
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .text(let value), .outside(let value): value
    case .null, .list, .object: nil
    }
  }
}
