/// A declaration of a parameter in a `NodeContract`: a typed ``Parameter`` or a plain ``ParameterContract``.
public protocol ParameterDeclaration: Sendable {
  /// The parameter without its Swift type.
  var contract: ParameterContract { get }
}

extension ParameterContract: ParameterDeclaration {
  public var contract: ParameterContract { self }
}

/// A parameter of a node type with the Swift type of its values. It is declared once and used by the contract, the node and programs.
///
/// ```swift
/// static let frequency = Parameter<Double>("frequency", 1...500, unit: "Hz", default: 50, live: true, text: "of the sine")
/// static let contract = NodeContract(…, parameters: [frequency])
///
/// let initial = setup[Self.frequency]                             // in the node's `init`
/// frequency = setup.live(Self.frequency)                          // likewise, and it follows changes
/// try run.parameter("robot", RobotVoice.frequency).set(80)        // in a program
/// ```
///
/// A parameter without a default must be given by the graph, unless it is ``optional``.
public struct Parameter<Value: ParameterConvertible>: ParameterDeclaration, Hashable {
  public let contract: ParameterContract

  /// Its key in the graph file.
  public var name: String { contract.name }

  init(
    _ name: String, _ kind: ParameterContract.Kind, unit: String = "", default value: Value?,
    live: Bool = false, secret: ParameterContract.Secrecy = .none, text: String
  ) {
    contract = ParameterContract(
      name, kind, unit: unit, default: value?.parameterValue, required: value == nil, live: live,
      secret: secret, text: text)
  }

  private init(_ contract: ParameterContract) { self.contract = contract }

  /// The same parameter without a default, which a graph may leave out; its value is then nil.
  public var optional: Parameter<Value?> {
    var contract = contract
    contract.defaultValue = nil
    contract.isRequired = false
    return Parameter<Value?>(contract)
  }
}

extension Parameter where Value == Bool {
  /// Creates a Boolean parameter.
  public init(
    _ name: String, default value: Bool? = nil, live: Bool = false, secret: ParameterContract.Secrecy = .none,
    text: String
  ) {
    self.init(name, .bool, default: value, live: live, secret: secret, text: text)
  }
}

extension Parameter where Value == Int {
  /// Creates an integer parameter with a range.
  public init(
    _ name: String, _ range: ClosedRange<Int>, unit: String = "", default value: Int? = nil,
    live: Bool = false,
    secret: ParameterContract.Secrecy = .none, text: String
  ) {
    self.init(name, .integer(range), unit: unit, default: value, live: live, secret: secret, text: text)
  }
}

extension Parameter where Value == Double {
  /// Creates a number parameter with a range.
  public init(
    _ name: String, _ range: ClosedRange<Double>, unit: String = "", default value: Double? = nil,
    live: Bool = false, secret: ParameterContract.Secrecy = .none, text: String
  ) {
    self.init(name, .number(range), unit: unit, default: value, live: live, secret: secret, text: text)
  }
}

extension Parameter where Value == String {
  /// Creates a text parameter. Setting a live one uses the heap.
  public init(
    _ name: String, default value: String? = nil, live: Bool = false,
    secret: ParameterContract.Secrecy = .none, text: String
  ) {
    self.init(name, .string, default: value, live: live, secret: secret, text: text)
  }

  /// Creates a file path parameter, relative to the directory of the graph file.
  public static func path(
    _ name: String, default value: String? = nil, live: Bool = false,
    secret: ParameterContract.Secrecy = .none, text: String
  ) -> Parameter<String> {
    Parameter(name, .path, default: value, live: live, secret: secret, text: text)
  }
}

extension Parameter where Value: ParameterChoice {
  /// Creates a parameter whose values are the cases of an enumeration.
  public init(
    _ name: String, default value: Value? = nil, live: Bool = false,
    secret: ParameterContract.Secrecy = .none, text: String
  ) {
    self.init(
      name, .choice(Value.allCases.map(\.rawValue)), default: value, live: live, secret: secret, text: text)
  }
}

extension Parameter {
  /// Creates a list of integers, each within a range.
  public init(
    _ name: String, each range: ClosedRange<Int>, count: ClosedRange<Int>, unit: String = "",
    default value: [Int]? = nil, secret: ParameterContract.Secrecy = .none, text: String
  ) where Value == [Int] {
    self.init(
      name, .list(of: .integer(range), count: count), unit: unit, default: value, secret: secret, text: text)
  }

  /// Creates a list of numbers, each within a range.
  public init(
    _ name: String, each range: ClosedRange<Double>, count: ClosedRange<Int>, unit: String = "",
    default value: [Double]? = nil, secret: ParameterContract.Secrecy = .none, text: String
  ) where Value == [Double] {
    self.init(
      name, .list(of: .number(range), count: count), unit: unit, default: value, secret: secret, text: text)
  }

  /// Creates a list of texts.
  public init(
    _ name: String, count: ClosedRange<Int>, default value: [String]? = nil,
    secret: ParameterContract.Secrecy = .none,
    text: String
  ) where Value == [String] {
    self.init(name, .list(of: .string, count: count), default: value, secret: secret, text: text)
  }
}

extension ParameterValues {
  /// The value of a declared parameter. Traps when the node's contract does not have the parameter.
  public subscript<Value>(parameter: Parameter<Value>) -> Value {
    guard let value = Value(parameterValue: values[parameter.name]) else {
      fatalError(
        "parameter \"\(parameter.name)\" has no value of type \(Value.self) here; add it to the parameters of the node's contract"
      )
    }
    return value
  }
}
