extension JSONValue {
  /// The value as JSON text on one line, without spaces.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The bytes of `text`.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    write(into: &result)
    return result
  }

  /// Appends the JSON text of the value.
  public func write(into result: inout [UInt8]) {
    switch self {
    case .null: result += "null".utf8
    case .bool(let value): result += (value ? "true" : "false").utf8
    case .number(let digits): result += digits.utf8
    case .string(let text): Self.write(text, into: &result)
    case .array(let values):
      result.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { result.append(UInt8(ascii: ",")) }
        value.write(into: &result)
      }
      result.append(UInt8(ascii: "]"))
    case .object(let members):
      result.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { result.append(UInt8(ascii: ",")) }
        Self.write(member.name, into: &result)
        result.append(UInt8(ascii: ":"))
        member.value.write(into: &result)
      }
      result.append(UInt8(ascii: "}"))
    }
  }

  private static func write(_ text: String, into result: inout [UInt8]) {
    let digits = Array("0123456789abcdef".utf8)
    result.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        result.append(UInt8(ascii: "\\"))
        result.append(byte)
      case 0x0A: result += "\\n".utf8
      case 0x0D: result += "\\r".utf8
      case 0x09: result += "\\t".utf8
      case 0..<0x20:
        result += "\\u00".utf8
        result.append(digits[Int(byte >> 4)])
        result.append(digits[Int(byte & 15)])
      default: result.append(byte)
      }
    }
    result.append(UInt8(ascii: "\""))
  }
}

extension JSONValue: CustomStringConvertible {
  public var description: String { text }
}
