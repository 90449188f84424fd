/// A JSON syntax error: its byte offset and what is wrong there. It never quotes the input, which may be what a user said.
public struct JSONProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// Offset of the first invalid byte.
  public let offset: Int
  /// What is wrong there.
  public let text: String

  public var description: String { "invalid JSON at byte \(offset): \(text)" }
}

extension JSONValue {
  /// The deepest allowed nesting; services stay below ten.
  public static let depthLimit = 64

  /// Parses exactly one value, strictly to RFC 8259.
  ///
  /// Safe for untrusted input: linear time, memory of at most about thirty times the input, recursion no deeper than `depthLimit`.
  /// Duplicate members are kept; lookups find the last.
  public init(parsing bytes: [UInt8]) throws(JSONProblem) {
    var reader = JSONReader(bytes: bytes)
    self = try reader.document()
  }

  /// Parses a string.
  public init(parsing text: String) throws(JSONProblem) { try self.init(parsing: Array(text.utf8)) }
}

struct JSONReader {
  let bytes: [UInt8]
  private var index = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func document() throws(JSONProblem) -> JSONValue {
    let value = try value(depth: 0)
    skipSpace()
    guard index == bytes.count else { throw problem("unexpected content after the value") }
    return value
  }

  private func problem(_ text: String) -> JSONProblem { JSONProblem(offset: index, text: text) }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
  }

  private mutating func value(depth: Int) throws(JSONProblem) -> JSONValue {
    skipSpace()
    guard depth < JSONValue.depthLimit else {
      throw problem("nested deeper than \(JSONValue.depthLimit) levels")
    }
    guard let next else { throw problem("unexpected end, expected a value") }
    switch next {
    case UInt8(ascii: "{"): return try object(depth)
    case UInt8(ascii: "["): return try array(depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    default: throw problem("unexpected character, expected a value")
    }
  }

  private mutating func word(_ text: StaticString, _ value: JSONValue) throws(JSONProblem) -> JSONValue {
    for offset in 0..<text.utf8CodeUnitCount {
      let byte = unsafe text.utf8Start[offset]
      guard next == byte else { throw problem("unexpected character, expected a value") }
      index += 1
    }
    return value
  }

  private mutating func expect(_ byte: UInt8, _ text: String) throws(JSONProblem) {
    skipSpace()
    guard next == byte else { throw problem(text) }
    index += 1
  }

  private mutating func object(_ depth: Int) throws(JSONProblem) -> JSONValue {
    index += 1
    var members: [JSONValue.Member] = []
    skipSpace()
    if next == UInt8(ascii: "}") {
      index += 1
      return .object([])
    }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw problem("expected a member name") }
      let name = try string()
      try expect(UInt8(ascii: ":"), "expected \":\" after a member name")
      members.append(JSONValue.Member(name, try value(depth: depth + 1)))
      skipSpace()
      if next == UInt8(ascii: "}") { break }
      try expect(UInt8(ascii: ","), "expected \",\" or \"}\" in an object")
    }
    index += 1
    return .object(members)
  }

  private mutating func array(_ depth: Int) throws(JSONProblem) -> JSONValue {
    index += 1
    var values: [JSONValue] = []
    skipSpace()
    if next == UInt8(ascii: "]") {
      index += 1
      return .array([])
    }
    while true {
      values.append(try value(depth: depth + 1))
      skipSpace()
      if next == UInt8(ascii: "]") { break }
      try expect(UInt8(ascii: ","), "expected \",\" or \"]\" in an array")
    }
    index += 1
    return .array(values)
  }

  private mutating func number() throws(JSONProblem) -> JSONValue {
    let start = index
    if next == UInt8(ascii: "-") { index += 1 }
    if next == UInt8(ascii: "0") {
      index += 1
    } else {
      try digits()
    }
    if next == UInt8(ascii: ".") {
      index += 1
      try digits()
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      index += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { index += 1 }
      try digits()
    }
    return .number(String(decoding: bytes[start..<index], as: UTF8.self))
  }

  private mutating func digits() throws(JSONProblem) {
    let start = index
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
    guard index > start else { throw problem("expected a digit in a number") }
  }

  private mutating func string() throws(JSONProblem) -> String {
    index += 1
    let start = index
    var isPlain = true
    while let byte = next, byte != UInt8(ascii: "\"") {
      guard byte >= 0x20 else { throw problem("unescaped control character in a string") }
      if byte == UInt8(ascii: "\\") {
        isPlain = false
        index += 1
      }
      index += 1
    }
    guard index < bytes.count else {
      index = bytes.count
      throw problem("unterminated string")
    }
    let content = bytes[start..<index]
    let bytes = isPlain ? Array(content) : try unescaped(content)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw problem("a string is not valid UTF-8")
    }
    index += 1
    return text
  }

  private mutating func unescaped(_ content: ArraySlice<UInt8>) throws(JSONProblem) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(content.count)
    var position = content.startIndex
    /// An error points at its escape, not at the end of the string.
    func refused(_ text: String) -> JSONProblem { JSONProblem(offset: position, text: text) }
    while position < content.endIndex {
      guard content[position] == UInt8(ascii: "\\") else {
        result.append(content[position])
        position += 1
        continue
      }
      switch content[position + 1] {
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "u"):
        guard var unit = Self.unit(content, position + 2) else { throw refused("invalid \\u escape") }
        if (0xDC00...0xDFFF).contains(unit) { throw refused("unpaired surrogate") }
        if (0xD800...0xDBFF).contains(unit) {
          guard position + 7 < content.endIndex, content[position + 6] == UInt8(ascii: "\\"),
            content[position + 7] == UInt8(ascii: "u"), let low = Self.unit(content, position + 8),
            (0xDC00...0xDFFF).contains(low)
          else { throw refused("unpaired surrogate") }
          unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
          position += 6
        }
        guard let scalar = Unicode.Scalar(unit) else { throw refused("invalid code point") }
        result += Array(String(Character(scalar)).utf8)
        position += 4
      case let byte
      where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "/"):
        result.append(byte)
      default: throw refused("invalid escape")
      }
      position += 2
    }
    return result
  }

  /// The value of four hexadecimal digits, or nil.
  private static func unit(_ content: ArraySlice<UInt8>, _ start: Int) -> UInt32? {
    guard start + 4 <= content.endIndex else { return nil }
    var value: UInt32 = 0
    for byte in content[start..<start + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 + UInt32(digit)
    }
    return value
  }
}
