/// A parameter value from a graph file, `--set` or a program.
public enum ParameterValue: Sendable, Hashable {
  /// `true` or `false`.
  case bool(Bool)
  /// An integer.
  case integer(Int)
  /// A number with a fraction, or outside the range of integers.
  case number(Double)
  /// A text, a path or a choice.
  case string(String)
  /// A list.
  case list([ParameterValue])
}

extension ParameterValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByStringLiteral, ExpressibleByArrayLiteral
{
  /// From a Boolean literal.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// From an integer literal.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// From a floating-point literal.
  public init(floatLiteral value: Double) { self = .number(value) }
  /// From a string literal.
  public init(stringLiteral value: String) { self = .string(value) }
  /// From an array literal.
  public init(arrayLiteral elements: ParameterValue...) { self = .list(elements) }
}

extension ParameterValue: CustomStringConvertible {
  /// As in JSON, but without escapes.
  public var description: String {
    switch self {
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .string(let value): "\"\(value)\""
    case .list(let values): "[\(values.map(\.description).joined(separator: ", "))]"
    }
  }

  /// The value as a number; nil unless it is an integer or a number.
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
/// Reading a parameter that the contract does not have, or as another type than declared, is a programming error and traps with the
/// parameter's name.
public struct ParameterValues: Sendable, Hashable {
  /// All values, by name.
  public private(set) var values: [String: ParameterValue]

  /// Creates values that were checked against the contract.
  public init(_ values: [String: ParameterValue] = [:]) { self.values = values }

  /// The raw value; nil when it was not given and has no default.
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
    "parameter \"\(name)\" is not \(type); declare it in the contract with that type and a default, or check has(_:) first"
  }
}
