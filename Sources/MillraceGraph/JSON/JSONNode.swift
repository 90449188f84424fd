/// A JSON value together with the bytes of the source it was read from.
///
/// Objects keep the order of their members. Nothing is converted while scanning: numbers keep their text and are asked for as an
/// integer or a double where the expected type is known.
public struct JSONNode: Sendable {
  /// What a JSON value can be.
  public enum Value: Sendable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number, exact.
    case number(JSONNumber)
    /// A string with its escapes resolved.
    case string(String)
    /// The items of an array.
    case array([JSONNode])
    /// The members of an object.
    case object(JSONObject)
  }

  /// The value.
  public let value: Value
  /// The bytes of the source, from the first to one past the last. Four bytes each: a source has at most 64 MiB.
  private let start, end: UInt32

  init(_ value: Value, _ range: Range<Int>) {
    self.value = value
    start = UInt32(range.lowerBound)
    end = UInt32(range.upperBound)
  }

  /// The bytes of the source the value takes, with its quotes, brackets or braces.
  public var range: Range<Int> { Int(start)..<Int(end) }

  /// The string, or nil when it is something else.
  public var string: String? { if case .string(let value) = value { value } else { nil } }
  /// The truth value, or nil when it is something else.
  public var bool: Bool? { if case .bool(let value) = value { value } else { nil } }
  /// The number, or nil when it is something else.
  public var number: JSONNumber? { if case .number(let value) = value { value } else { nil } }
  /// The number as an integer, or nil when it is something else or has no exact integer value.
  public var integer: Int64? { number?.integer }
  /// The number as a double, correctly rounded, or nil when it is something else.
  public var double: Double? { number?.double }
  /// The items, or nil when it is no array.
  public var array: [JSONNode]? { if case .array(let value) = value { value } else { nil } }
  /// The object, or nil when it is something else.
  public var object: JSONObject? { if case .object(let value) = value { value } else { nil } }
  /// Whether it is `null`.
  public var isNull: Bool { if case .null = value { true } else { false } }

  /// The value of a member when this is an object that has the key.
  public subscript(key: String) -> JSONNode? { object?[key]?.value }

  /// What it is, in words for a message such as `expected text, found a number`.
  public var kind: String {
    switch value {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .number: "a number"
    case .string: "text"
    case .array: "an array"
    case .object: "an object"
    }
  }

  /// Whether two values say the same in the same order, wherever they stand. Numbers are compared by their text and strings
  /// character by character, so that nothing lost in writing and reading again can hide.
  public func hasSameContent(as other: JSONNode) -> Bool {
    switch (value, other.value) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left.literal == right.literal
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.array(let left), .array(let right)):
      left.count == right.count && zip(left, right).allSatisfy { $0.hasSameContent(as: $1) }
    case (.object(let left), .object(let right)):
      left.members.count == right.members.count
        && zip(left.members, right.members).allSatisfy {
          $0.key.utf8.elementsEqual($1.key.utf8) && $0.value.hasSameContent(as: $1.value)
        }
    default: false
    }
  }
}

/// A member of a JSON object.
public struct JSONMember: Sendable {
  /// The key with its escapes resolved.
  public let key: String
  /// The value.
  public let value: JSONNode
  private let keyStart, keyEnd: UInt32

  init(key: String, keyRange: Range<Int>, value: JSONNode) {
    self.key = key
    self.value = value
    keyStart = UInt32(keyRange.lowerBound)
    keyEnd = UInt32(keyRange.upperBound)
  }

  /// The bytes of the key in the source, with its quotes.
  public var keyRange: Range<Int> { Int(keyStart)..<Int(keyEnd) }

  /// The bytes from the key to the end of the value.
  public var range: Range<Int> { keyRange.lowerBound..<value.range.upperBound }
}

/// The members of a JSON object in the order of the file. No key appears twice.
public struct JSONObject: Sendable {
  /// The members in the order of the file.
  public let members: [JSONMember]
  /// Place of each key; empty for objects so small that looking through the members is faster.
  private let places: [String: Int]

  init(members: [JSONMember], places: [String: Int]) {
    self.members = members
    self.places = places
  }

  /// The member with a key, or nil. Takes constant time on average, however large the object is.
  public subscript(key: String) -> JSONMember? {
    if places.isEmpty { return members.first { $0.key == key } }
    return places[key].map { members[$0] }
  }

  /// The keys in the order of the file.
  public var keys: some Sequence<String> { members.lazy.map(\.key) }
}
