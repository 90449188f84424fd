/// A JSON value in a message of a service. It keeps no positions in the source.
///
/// Members keep their order and numbers their digits, so that unknown content is passed on unchanged. Not for graph files: those need
/// positions and reject duplicate members; see `MillraceGraph`.
public indirect enum JSONValue: Sendable, Hashable {
  /// JSON's `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// The digits as written.
  case number(String)
  /// A string, unescaped.
  case string(String)
  /// The items in order.
  case array([JSONValue])
  /// The members in order, duplicates included.
  case object([Member])

  /// A member of an object.
  public struct Member: Sendable, Hashable {
    /// Its name, unescaped.
    public var name: String
    /// Its value.
    public var value: JSONValue
    /// Creates a member.
    public init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// An integer.
  public static func integer(_ value: Int) -> JSONValue { .number(String(value)) }

  /// A floating-point number; `null` when it is not finite, as JSON cannot express that.
  public static func double(_ value: Double) -> JSONValue { value.isFinite ? .number("\(value)") : .null }

  /// An object of the members whose value is not nil.
  public static func object(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
    .object(members.compactMap { name, value in value.map { Member(name, $0) } })
  }

  // MARK: Lookup

  /// The value of a member; the last one of duplicates. Nil when this is not an object.
  public subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// The string, or nil for any other value.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The Boolean, or nil for any other value.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The items, or nil for anything but an array.
  public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
  /// The members, or nil for anything but an object.
  public var members: [Member]? { if case .object(let value) = self { value } else { nil } }
  /// True only for `null`.
  public var isNull: Bool { self == .null }

  /// The number of decimal digits that a double represents exactly.
  private static let mostExactDigits = 15

  /// The number if it is an integer (`3` and `3.0` are) and fits into `Int`.
  public var integer: Int? {
    guard case .number(let digits) = self else { return nil }
    if let value = Int(digits) { return value }
    guard digits.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) else {
      let parts = digits.split(separator: ".", maxSplits: 1)
      return parts.count == 2 && parts[1].utf8.allSatisfy { $0 == UInt8(ascii: "0") } ? Int(parts[0]) : nil
    }
    // Beyond that many digits a double is rounded, and may be an integer where the number is not.
    guard digits.count <= Self.mostExactDigits else { return nil }
    return Double(digits).flatMap { Int(exactly: $0) }
  }

  /// The number, or nil when it is out of range of a double, such as `1e999`.
  public var double: Double? {
    guard case .number(let digits) = self, let value = Double(digits), value.isFinite else { return nil }
    return value
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates an integer.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// Creates a Boolean.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates an array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Creates an object with its members in the order written.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0, $1) })
  }
}
