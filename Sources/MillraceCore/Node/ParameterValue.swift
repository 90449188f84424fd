/// A value from a graph file, a `--set`, or a program.
public enum ParameterValue: Sendable, Hashable {
  /// `true` or `false`.
  case bool(Bool)
  /// A whole number.
  case integer(Int)
  /// A number with a fraction, or beyond the whole ones.
  case number(Double)
  /// A text, a path or a word of a choice.
  case string(String)
  /// Several, in order.
  case list([ParameterValue])
}

extension ParameterValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByStringLiteral, ExpressibleByArrayLiteral
{
  /// From `true` or `false` in Swift.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// From a whole number in Swift.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// From a number in Swift.
  public init(floatLiteral value: Double) { self = .number(value) }
  /// From a text in Swift.
  public init(stringLiteral value: String) { self = .string(value) }
  /// From an array in Swift.
  public init(arrayLiteral elements: ParameterValue...) { self = .list(elements) }
}

extension ParameterValue: CustomStringConvertible {
  /// As JSON writes it, without escapes.
  public var description: String {
    switch self {
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .string(let value): "\"\(value)\""
    case .list(let values): "[\(values.map(\.description).joined(separator: ", "))]"
    }
  }

  /// The value as a number, from an integer or a number.
  public var asNumber: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}

/// The checked parameters of one node: every parameter of its contract that was given or has a default.
///
/// Reading a name the contract does not have, or as another type than it declares, is a programmer's mistake and traps with
/// the name in the text.
public struct ParameterValues: Sendable, Hashable {
  /// All of them, by name.
  public private(set) var values: [String: ParameterValue]

  /// Values that have been checked against the contract.
  public init(_ values: [String: ParameterValue] = [:]) { self.values = values }

  /// The raw value, nil when neither given nor defaulted.
  public subscript(name: String) -> ParameterValue? {
    get { values[name] }
    set { values[name] = newValue }
  }

  /// True when the parameter has a value.
  public func has(_ name: String) -> Bool { values[name] != nil }

  /// The value of a bool.
  public func bool(_ name: String) -> Bool {
    if case .bool(let value)? = values[name] { return value }
    fatalError(wrong(name, "a bool"))
  }

  /// The value of an integer, in the unit of its contract.
  public func integer(_ name: String) -> Int {
    if case .integer(let value)? = values[name] { return value }
    fatalError(wrong(name, "an integer"))
  }

  /// The value of a number or an integer, in the unit of its contract.
  public func number(_ name: String) -> Double {
    if let value = values[name]?.asNumber { return value }
    fatalError(wrong(name, "a number"))
  }

  /// The value of a string, a path or a choice.
  public func string(_ name: String) -> String {
    if case .string(let value)? = values[name] { return value }
    fatalError(wrong(name, "a string"))
  }

  /// The values of a list of numbers.
  public func numbers(_ name: String) -> [Double] {
    if case .list(let list)? = values[name] { return list.compactMap(\.asNumber) }
    fatalError(wrong(name, "a list of numbers"))
  }

  /// The values of a list of texts.
  public func strings(_ name: String) -> [String] {
    guard case .list(let list)? = values[name] else { fatalError(wrong(name, "a list of strings")) }
    return list.compactMap { if case .string(let value) = $0 { value } else { nil } }
  }

  private func wrong(_ name: String, _ type: String) -> String {
    "parameter \"\(name)\" is read as \(type), but the contract gives it no such value: declare it with that type and a default, or ask has(_:) first"
  }
}
