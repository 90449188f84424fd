/// Writes JSON text in the order of the calls: the same calls produce the same bytes.
///
/// ```swift
/// var json = JSONWriter(pretty: true)
/// json.object { json in
///   json.member("name", "uplink")
///   json.array("rates") { json in
///     json.value(16_000)
///     json.value(48_000)
///   }
/// }
/// print(json.text)
/// ```
///
/// Strings are escaped and numbers are valid JSON. Traps on a member outside an object, a value without a key inside one, and a second
/// value at the top level. Does not check for duplicate keys.
public struct JSONWriter: Sendable {
  /// What has been written so far, UTF-8.
  public private(set) var bytes: [UInt8] = []

  private let pretty: Bool
  /// The arrays and objects that are open.
  private var levels: [Level] = []
  /// Whether the last thing written was a key.
  private var awaitsValue = false

  private struct Level {
    let isObject: Bool
    var isEmpty = true
  }

  /// An empty writer.
  ///
  /// - Parameter pretty: whether to put every member and item on its own line, indented by two spaces; otherwise there is no white space.
  public init(pretty: Bool = false) {
    self.pretty = pretty
  }

  /// What has been written so far, as a string.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  // MARK: Values

  /// Writes a string.
  public mutating func value(_ string: String) {
    beginValue()
    append(quoting: string)
  }

  /// Writes an integer.
  public mutating func value(_ integer: some BinaryInteger) {
    append(String(integer))
  }

  /// Writes the shortest decimal that reads back as the same number of the same type. An infinity or NaN becomes `null`: JSON
  /// cannot represent them.
  public mutating func value(_ number: some BinaryFloatingPoint & LosslessStringConvertible) {
    append(number.isFinite ? String(number) : "null")
  }

  /// Writes `true` or `false`.
  public mutating func value(_ bool: Bool) {
    append(bool ? "true" : "false")
  }

  /// Writes `null`.
  public mutating func null() {
    append("null")
  }

  /// Writes a parsed value with everything in it; numbers keep their text.
  public mutating func value(_ node: JSONNode) {
    switch node.value {
    case .null: null()
    case .bool(let bool): value(bool)
    case .string(let string): value(string)
    case .number(let number): append(number.literal)
    case .array(let items):
      array { json in
        for item in items { json.value(item) }
      }
    case .object(let object):
      self.object { json in
        for member in object.members { json.member(member.key, member.value) }
      }
    }
  }

  /// Writes an object; the closure writes its members.
  public mutating func object<Failure: Error>(
    _ members: (inout JSONWriter) throws(Failure) -> Void
  ) throws(Failure) {
    beginValue()
    bytes.append(UInt8(ascii: "{"))
    levels.append(Level(isObject: true))
    try members(&self)
    close(with: UInt8(ascii: "}"))
  }

  /// Writes an array; the closure writes its items.
  public mutating func array<Failure: Error>(
    _ items: (inout JSONWriter) throws(Failure) -> Void
  ) throws(Failure) {
    beginValue()
    bytes.append(UInt8(ascii: "["))
    levels.append(Level(isObject: false))
    try items(&self)
    close(with: UInt8(ascii: "]"))
  }

  // MARK: Members of an object

  /// Writes the key of a member; its value must be written next.
  public mutating func key(_ key: String) {
    precondition(
      levels.last?.isObject == true && !awaitsValue, "a key belongs in an object, before a value")
    separate()
    append(quoting: key)
    bytes.append(UInt8(ascii: ":"))
    if pretty { bytes.append(0x20) }
    awaitsValue = true
  }

  /// Writes a member that is a string.
  public mutating func member(_ key: String, _ string: String) {
    self.key(key)
    value(string)
  }

  /// Writes a member that is an integer.
  public mutating func member(_ key: String, _ integer: some BinaryInteger) {
    self.key(key)
    value(integer)
  }

  /// Writes a member that is a number, `null` when it is not finite.
  public mutating func member(_ key: String, _ number: some BinaryFloatingPoint & LosslessStringConvertible) {
    self.key(key)
    value(number)
  }

  /// Writes a member that is `true` or `false`.
  public mutating func member(_ key: String, _ bool: Bool) {
    self.key(key)
    value(bool)
  }

  /// Writes a member that is a parsed value.
  public mutating func member(_ key: String, _ node: JSONNode) {
    self.key(key)
    value(node)
  }

  /// Writes a member that is an object; the closure writes its members.
  public mutating func object<Failure: Error>(
    _ key: String, _ members: (inout JSONWriter) throws(Failure) -> Void
  ) throws(Failure) {
    self.key(key)
    try object(members)
  }

  /// Writes a member that is an array; the closure writes its items.
  public mutating func array<Failure: Error>(
    _ key: String, _ items: (inout JSONWriter) throws(Failure) -> Void
  ) throws(Failure) {
    self.key(key)
    try array(items)
  }
}

// MARK: - Layout and escapes

extension JSONWriter {
  /// Writes what separates the value from the one before it, and checks that a value is allowed here.
  private mutating func beginValue() {
    guard let level = levels.last else {
      precondition(bytes.isEmpty, "a document is one value")
      return
    }
    precondition(awaitsValue == level.isObject, "a value in an object needs a key")
    if level.isObject { awaitsValue = false } else { separate() }
  }

  /// Writes the comma and line break before a key or item.
  private mutating func separate() {
    let last = levels.count - 1
    if levels[last].isEmpty { levels[last].isEmpty = false } else { bytes.append(UInt8(ascii: ",")) }
    breakLine()
  }

  private mutating func breakLine() {
    guard pretty else { return }
    bytes.append(0x0A)
    bytes.append(contentsOf: repeatElement(0x20, count: 2 * levels.count))
  }

  private mutating func close(with bracket: UInt8) {
    precondition(!awaitsValue, "a key needs a value")
    let level = levels.removeLast()
    if !level.isEmpty { breakLine() }
    bytes.append(bracket)
  }

  private mutating func append(_ literal: String) {
    beginValue()
    bytes.append(contentsOf: literal.utf8)
  }

  /// Appends a string in quotes, escaping only what RFC 8259 section 7 requires.
  private mutating func append(quoting string: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in string.utf8 {
      switch byte {
      case UInt8(ascii: "\""): bytes.append(contentsOf: #"\""#.utf8)
      case UInt8(ascii: "\\"): bytes.append(contentsOf: #"\\"#.utf8)
      case 0x08: bytes.append(contentsOf: #"\b"#.utf8)
      case 0x09: bytes.append(contentsOf: #"\t"#.utf8)
      case 0x0A: bytes.append(contentsOf: #"\n"#.utf8)
      case 0x0C: bytes.append(contentsOf: #"\f"#.utf8)
      case 0x0D: bytes.append(contentsOf: #"\r"#.utf8)
      case 0..<0x20: bytes.append(contentsOf: "\\u\(Problem.fourDigits(Unicode.Scalar(byte)))".utf8)
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
