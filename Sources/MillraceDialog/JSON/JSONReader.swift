/// Why bytes are not JSON: at which byte, and what is wrong there. It never quotes the text, which may be what a user said.
public struct JSONProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// The first byte that does not fit.
  public let offset: Int
  /// What is wrong there, in words.
  public let text: String

  public var description: String { "no JSON at byte \(offset): \(text)" }
}

extension JSONValue {
  /// Values may lie in one another this deep; services stay below ten.
  public static let depthLimit = 64

  /// Reads one value and nothing behind it, RFC 8259 to the letter.
  ///
  /// For bytes of strangers: takes time in their number, never more memory than some thirty times theirs, and no deeper recursion
  /// than `depthLimit`. Doubled members are kept; looking finds the last.
  public init(parsing bytes: [UInt8]) throws(JSONProblem) {
    var reader = JSONReader(bytes: bytes)
    self = try reader.document()
  }

  /// Reads a text.
  public init(parsing text: String) throws(JSONProblem) { try self.init(parsing: Array(text.utf8)) }
}

struct JSONReader {
  let bytes: [UInt8]
  private var index = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func document() throws(JSONProblem) -> JSONValue {
    let value = try value(depth: 0)
    skipSpace()
    guard index == bytes.count else { throw problem("something follows the value") }
    return value
  }

  private func problem(_ text: String) -> JSONProblem { JSONProblem(offset: index, text: text) }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
  }

  private mutating func value(depth: Int) throws(JSONProblem) -> JSONValue {
    skipSpace()
    guard depth < JSONValue.depthLimit else { throw problem("it lies deeper than \(JSONValue.depthLimit)") }
    guard let next else { throw problem("it ends where a value is due") }
    switch next {
    case UInt8(ascii: "{"): return try object(depth)
    case UInt8(ascii: "["): return try array(depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    default: throw problem("no value begins like this")
    }
  }

  private mutating func word(_ text: StaticString, _ value: JSONValue) throws(JSONProblem) -> JSONValue {
    for place in 0..<text.utf8CodeUnitCount {
      let byte = unsafe text.utf8Start[place]
      guard next == byte else { throw problem("no value begins like this") }
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
      guard next == UInt8(ascii: "\"") else { throw problem("a member has no name") }
      let name = try string()
      try expect(UInt8(ascii: ":"), "a member has no value")
      members.append(JSONValue.Member(name, try value(depth: depth + 1)))
      skipSpace()
      if next == UInt8(ascii: "}") { break }
      try expect(UInt8(ascii: ","), "an object does not go on like this")
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
      try expect(UInt8(ascii: ","), "an array does not go on like this")
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
    guard index > start else { throw problem("a number lacks a digit") }
  }

  private mutating func string() throws(JSONProblem) -> String {
    index += 1
    let start = index
    var isPlain = true
    while let byte = next, byte != UInt8(ascii: "\"") {
      guard byte >= 0x20 else { throw problem("a control character stands in a text") }
      if byte == UInt8(ascii: "\\") {
        isPlain = false
        index += 1
      }
      index += 1
    }
    guard index < bytes.count else {
      index = bytes.count
      throw problem("a text does not end")
    }
    let content = bytes[start..<index]
    let bytes = isPlain ? Array(content) : try unescaped(content)
    guard let text = String(validating: bytes, as: UTF8.self) else { throw problem("a text is not UTF-8") }
    index += 1
    return text
  }

  private mutating func unescaped(_ content: ArraySlice<UInt8>) throws(JSONProblem) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(content.count)
    var place = content.startIndex
    /// A refusal points at its escape, not at the end of the text.
    func refused(_ text: String) -> JSONProblem { JSONProblem(offset: place, text: text) }
    while place < content.endIndex {
      guard content[place] == UInt8(ascii: "\\") else {
        result.append(content[place])
        place += 1
        continue
      }
      switch content[place + 1] {
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "u"):
        guard var unit = Self.unit(content, place + 2) else { throw refused("an escape lacks digits") }
        if (0xDC00...0xDFFF).contains(unit) { throw refused("half a surrogate pair") }
        if (0xD800...0xDBFF).contains(unit) {
          guard place + 7 < content.endIndex, content[place + 6] == UInt8(ascii: "\\"),
            content[place + 7] == UInt8(ascii: "u"), let low = Self.unit(content, place + 8),
            (0xDC00...0xDFFF).contains(low)
          else { throw refused("half a surrogate pair") }
          unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
          place += 6
        }
        guard let scalar = Unicode.Scalar(unit) else { throw refused("no character has this number") }
        result += Array(String(Character(scalar)).utf8)
        place += 4
      case let byte
      where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "/"):
        result.append(byte)
      default: throw refused("no escape is written like this")
      }
      place += 2
    }
    return result
  }

  /// Four hexadecimal digits; nil when they are not that.
  private static func unit(_ content: ArraySlice<UInt8>, _ place: Int) -> UInt32? {
    guard place + 4 <= content.endIndex else { return nil }
    var value: UInt32 = 0
    for byte in content[place..<place + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 + UInt32(digit)
    }
    return value
  }
}
