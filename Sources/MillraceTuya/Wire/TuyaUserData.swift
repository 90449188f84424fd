public import MillraceJSON

/// User data, attribute 111: JSON in the dialects v2x, attributes of their own in v1. Both are read to the same JSON object.
///
/// Peers of v2x send the values of its members as objects, or as texts that contain JSON; both are read as objects, and sent as objects.
public enum TuyaUserData {
  /// The members that both forms have, by the ids of v1. Source: the vendor's list of attributes.
  private static let names: [(id: UInt16, name: String)] = [
    (1_001, "language"), (1_002, "payloadsEndDataId"), (1_003, "chatAttributes"),
    (1_004, "sessionAttributes"), (1_006, "errorCode"), (1_007, "errorText"), (1_008, "breakAttributes"),
  ]

  /// Reads the value of attribute 111.
  /// - Returns: an object.
  /// - Throws: `userData`.
  public static func read(_ bytes: [UInt8], _ dialect: TuyaDialect) throws(TuyaWireProblem) -> JSONValue {
    dialect == .v1 ? try readAttributes(bytes) : try readJSON(bytes)
  }

  /// Writes an object.
  /// - Parameters:
  ///   - data: an object. Another value is written as it is in v2x; in v1 nothing is written.
  ///   - dialect: of the wire.
  public static func bytes(_ data: JSONValue, _ dialect: TuyaDialect) -> [UInt8] {
    dialect == .v1 ? attributes(data) : data.bytes
  }

  // MARK: JSON

  private static func readJSON(_ bytes: [UInt8]) throws(TuyaWireProblem) -> JSONValue {
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: bytes) } catch {
      throw TuyaWireProblem(.userData, "the user data are \(error)")
    }
    guard let members = json.members else {
      throw TuyaWireProblem(.userData, "the user data are no JSON object")
    }
    return .object(members.map { JSONValue.Member($0.name, opened($0.value)) })
  }

  /// An object or an array that is written as a text.
  private static func opened(_ value: JSONValue) -> JSONValue {
    guard let text = value.string, let first = text.utf8.first,
      first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    else { return value }
    do throws(JSONProblem) { return try JSONValue(parsing: text) } catch { return value }
  }

  // MARK: Attributes

  /// Bytes in front of a value: id, kind, length.
  private static let headBytes = 7

  private static func readAttributes(_ bytes: [UInt8]) throws(TuyaWireProblem) -> JSONValue {
    var members: [JSONValue.Member] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= headBytes else {
        throw TuyaWireProblem(.userData, "the user data end within the head of an attribute")
      }
      func number(_ from: Int, _ count: Int) -> Int {
        rest.dropFirst(from).prefix(count).reduce(0) { $0 << 8 | Int($1) }
      }
      let (id, kind, length) = (UInt16(number(0, 2)), UInt8(number(2, 1)), number(3, 4))
      rest = rest.dropFirst(headBytes)
      guard length <= rest.count else {
        throw TuyaWireProblem(
          .userData, "an attribute of the user data has \(length) bytes, and \(rest.count) are left")
      }
      let name = names.first { $0.id == id }?.name ?? "\(id)"
      members.append(JSONValue.Member(name, try value(rest.prefix(length), kind)))
      rest = rest.dropFirst(length)
    }
    return .object(members)
  }

  private static func value(
    _ bytes: ArraySlice<UInt8>, _ kind: UInt8
  ) throws(TuyaWireProblem) -> JSONValue {
    guard let kind = TuyaAttributeID.Kind(rawValue: kind) else {
      throw TuyaWireProblem(.userData, "an attribute of the user data has the unknown kind \(kind)")
    }
    if let size = kind.size {
      guard bytes.count == size else {
        throw TuyaWireProblem(
          .userData, "a number of the user data has \(bytes.count) bytes instead of \(size)")
      }
      let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return .number(String(number))
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw TuyaWireProblem(.userData, "a text of the user data is no UTF-8")
    }
    return opened(.string(text))
  }

  private static func attributes(_ data: JSONValue) -> [UInt8] {
    var bytes: [UInt8] = []
    for member in data.members ?? [] {
      guard let id = names.first(where: { $0.name == member.name })?.id ?? UInt16(member.name) else {
        continue
      }
      let (kind, value) = encoded(member.value, id)
      func add(_ number: Int, _ count: Int) {
        for index in 0..<count {
          bytes.append(UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - index))))
        }
      }
      add(Int(id), 2)
      add(Int(kind.rawValue), 1)
      add(value.count, 4)
      bytes += value
    }
    return bytes
  }

  /// A number that an attribute can hold; nil: it is none, and is written as a text.
  private static func unsigned(_ value: JSONValue) -> UInt64? {
    if let number = value.integer { return UInt64(exactly: number) }
    guard case .number(let digits) = value else { return nil }
    return UInt64(digits)
  }

  private static func encoded(_ value: JSONValue, _ id: UInt16) -> (TuyaAttributeID.Kind, [UInt8]) {
    if let number = unsigned(value) {
      // The size of a known attribute, or a larger one where the number needs it.
      let least = TuyaAttributeID(rawValue: id).kind?.size ?? 1
      let kinds: [TuyaAttributeID.Kind] = [.u8, .u16, .u32]
      let kind = kinds.first { ($0.size ?? 0) >= least && number >> UInt64(8 * ($0.size ?? 0)) == 0 } ?? .u64
      let size = kind.size ?? 8
      return (kind, (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (size - 1 - $0))) })
    }
    return (.text, Array((value.string ?? value.text).utf8))
  }
}
