/// A JSON value together with its place in the source.
///
/// Objects keep the order of their members. Numbers keep their text, and are converted to an integer or a double where the
/// expected type is known.
public struct JSONNode: Sendable {
  /// A JSON value.
  public enum Value: Sendable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number, as written.
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
  // Four bytes each: a source has at most 64 MiB.
  private let start, end: UInt32

  init(_ value: Value, _ range: Range<Int>) {
    self.value = value
    start = UInt32(range.lowerBound)
    end = UInt32(range.upperBound)
  }

  /// The bytes of the value in the source, with its quotes, brackets or braces.
  public var range: Range<Int> { Int(start)..<Int(end) }

  /// The string; nil for any other kind of value.
  public var string: String? { if case .string(let value) = value { value } else { nil } }
  /// The Boolean; nil for any other kind of value.
  public var bool: Bool? { if case .bool(let value) = value { value } else { nil } }
  /// The number; nil for any other kind of value.
  public var number: JSONNumber? { if case .number(let value) = value { value } else { nil } }
  /// The number as an integer; nil for any other kind of value, and for a number that is not an integer of 64 bits.
  public var integer: Int64? { number?.integer }
  /// The number as a double, correctly rounded; nil for any other kind of value.
  public var double: Double? { number?.double }
  /// The items of the array; nil for any other kind of value.
  public var array: [JSONNode]? { if case .array(let value) = value { value } else { nil } }
  /// The object; nil for any other kind of value.
  public var object: JSONObject? { if case .object(let value) = value { value } else { nil } }
  /// Whether it is `null`.
  public var isNull: Bool { if case .null = value { true } else { false } }

  /// The value of a member; nil when this is not an object or does not have the key.
  public subscript(key: String) -> JSONNode? { object?[key]?.value }

  /// The kind of value for a message, such as `expected a string, found a number`.
  public var kind: String {
    switch value {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }

  /// Whether two values have the same content in the same order, regardless of their places. Compares numbers by their text and
  /// strings byte by byte, so that it finds whatever a round trip through the writer loses.
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

/// The members of a JSON object in the order of the source. Keys are unique.
public struct JSONObject: Sendable {
  /// The members in the order of the source.
  public let members: [JSONMember]
  /// The index of each key's member; empty for objects so small that a linear search is faster.
  private let indices: [String: Int]

  init(members: [JSONMember], indices: [String: Int]) {
    self.members = members
    self.indices = indices
  }

  /// The member with a key; nil when there is none.
  /// - Complexity: constant on average.
  public subscript(key: String) -> JSONMember? {
    if indices.isEmpty { return members.first { $0.key == key } }
    return indices[key].map { members[$0] }
  }

  /// The keys in the order of the source.
  public var keys: some Sequence<String> { members.lazy.map(\.key) }
}
