/// A JSON value as services send it: what a message holds, without places in a file.
///
/// Members keep their order, and numbers the digits they were written with, so that what nobody understands goes on as it
/// came. Not for graph files: those want positions and refuse doubled members, which `MillraceGraph` does.
public indirect enum JSONValue: Sendable, Hashable {
  /// JSON's `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// The digits as written.
  case number(String)
  /// A text, its escapes taken out.
  case string(String)
  /// Values in order.
  case array([JSONValue])
  /// Members in the order they came, doubled ones too.
  case object([Member])

  /// One member of an object.
  public struct Member: Sendable, Hashable {
    /// Its name, its escapes taken out.
    public var name: String
    /// What it is.
    public var value: JSONValue
    /// A member by its name and value.
    public init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// A whole number.
  public static func integer(_ value: Int) -> JSONValue { .number(String(value)) }

  /// A number; one that is not finite becomes `null`, for which JSON has no other word.
  public static func double(_ value: Double) -> JSONValue { value.isFinite ? .number("\(value)") : .null }

  /// An object of the members that have a value.
  public static func object(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
    .object(members.compactMap { name, value in value.map { Member(name, $0) } })
  }

  // MARK: Looking

  /// The value of a member; the last one where a name is doubled. nil for everything but objects.
  public subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// The text; nil for anything else.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The truth value; nil for anything else.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The items; nil for anything but an array.
  public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
  /// The members; nil for anything but an object.
  public var members: [Member]? { if case .object(let value) = self { value } else { nil } }
  /// True for `null` alone.
  public var isNull: Bool { self == .null }

  /// Decimal digits that every double holds.
  private static let mostExactDigits = 15

  /// The number, where it is a whole one (`3` and `3.0` are) that fits.
  public var integer: Int? {
    guard case .number(let digits) = self else { return nil }
    if let value = Int(digits) { return value }
    guard digits.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) else {
      let parts = digits.split(separator: ".", maxSplits: 1)
      return parts.count == 2 && parts[1].utf8.allSatisfy { $0 == UInt8(ascii: "0") } ? Int(parts[0]) : nil
    }
    // Of more digits a double leaves something out, and may be whole where the number is not.
    guard digits.count <= Self.mostExactDigits else { return nil }
    return Double(digits).flatMap { Int(exactly: $0) }
  }

  /// The number; nil for one that is beyond every double, such as `1e999`.
  public var double: Double? {
    guard case .number(let digits) = self, let value = Double(digits), value.isFinite else { return nil }
    return value
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// From a text in Swift.
  public init(stringLiteral value: String) { self = .string(value) }
  /// From a whole number in Swift.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// From `true` or `false` in Swift.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// From an array in Swift.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// From a dictionary in Swift, its members in the order they are written.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0, $1) })
  }
}
