/// A Swift type for values of parameters: `Bool`, `Int`, `Double`, `String`, a ``ParameterChoice``, or an array or optional of
/// these.
///
/// For the control side, except `init(live:)`, which uses no heap unless the value is a text.
public protocol ParameterConvertible: Sendable {
  /// Converts a checked value of the graph, nil for a parameter that was left out. Fails when the value has another type.
  init?(parameterValue: ParameterValue?)
  /// Converts a value that a live parameter is set to. Fails when the value has another type.
  init?(live: LiveValue)
  /// The value as in a graph file; nil for a parameter that is left out.
  var parameterValue: ParameterValue? { get }
  /// The values of a choice in the order of the contract's list, whose indices control messages use; empty for all other types.
  static var choices: [Self] { get }
}

extension ParameterConvertible {
  public static var choices: [Self] { [] }
}

extension Bool: ParameterConvertible {
  public init?(parameterValue: ParameterValue?) {
    guard case .bool(let value)? = parameterValue else { return nil }
    self = value
  }
  public init?(live: LiveValue) {
    guard case .bool(let value) = live else { return nil }
    self = value
  }
  public var parameterValue: ParameterValue? { .bool(self) }
}

extension Int: ParameterConvertible {
  public init?(parameterValue: ParameterValue?) {
    guard case .integer(let value)? = parameterValue else { return nil }
    self = value
  }
  public init?(live: LiveValue) {
    guard case .integer(let value) = live else { return nil }
    self = value
  }
  public var parameterValue: ParameterValue? { .integer(self) }
}

extension Double: ParameterConvertible {
  public init?(parameterValue: ParameterValue?) {
    guard let value = parameterValue?.asNumber else { return nil }
    self = value
  }
  public init?(live: LiveValue) {
    switch live {
    case .number(let value): self = value
    case .integer(let value): self = Double(value)
    case .bool, .choice, .string: return nil
    }
  }
  public var parameterValue: ParameterValue? { .number(self) }
}

extension String: ParameterConvertible {
  public init?(parameterValue: ParameterValue?) {
    guard case .string(let value)? = parameterValue else { return nil }
    self = value
  }
  public init?(live: LiveValue) {
    guard case .string(let value) = live else { return nil }
    self = value
  }
  public var parameterValue: ParameterValue? { .string(self) }
}

/// An enumeration whose cases are the possible values of a parameter.
///
/// ```swift
/// enum Mode: String, ParameterChoice { case speech, music }
/// static let mode = Parameter("mode", default: Mode.speech, text: "what is expected")
/// ```
public protocol ParameterChoice: ParameterConvertible, RawRepresentable, CaseIterable
where RawValue == String {}

extension ParameterChoice {
  public init?(parameterValue: ParameterValue?) {
    guard case .string(let word)? = parameterValue else { return nil }
    self.init(rawValue: word)
  }
  public init?(live: LiveValue) {
    guard case .choice(let number) = live, Self.choices.indices.contains(number) else { return nil }
    self = Self.choices[number]
  }
  public var parameterValue: ParameterValue? { .string(rawValue) }
  public static var choices: [Self] { Array(allCases) }
}

extension Optional: ParameterConvertible where Wrapped: ParameterConvertible {
  public init?(parameterValue: ParameterValue?) {
    guard let parameterValue else {
      self = Wrapped?.none
      return
    }
    guard let value = Wrapped(parameterValue: parameterValue) else { return nil }
    self = value
  }
  public init?(live: LiveValue) {
    guard let value = Wrapped(live: live) else { return nil }
    self = value
  }
  public var parameterValue: ParameterValue? { self?.parameterValue }
  public static var choices: [Wrapped?] { Wrapped.choices }
}

extension Array: ParameterConvertible where Element: ParameterConvertible {
  public init?(parameterValue: ParameterValue?) {
    guard case .list(let list)? = parameterValue else { return nil }
    self = []
    for item in list {
      guard let value = Element(parameterValue: item) else { return nil }
      append(value)
    }
  }
  /// Always fails: a list cannot be set while the graph runs.
  public init?(live: LiveValue) { nil }
  public var parameterValue: ParameterValue? { .list(compactMap(\.parameterValue)) }
}
