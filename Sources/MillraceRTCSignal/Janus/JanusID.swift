package import MillraceJSON

/// The id of a room, a participant or a mountpoint of Janus: a number up to 2⁵³, or a text where a plugin is set to `string_ids`.
package enum JanusID: Hashable, Sendable, CustomStringConvertible {
  case number(Int)
  case text(String)

  /// The largest number that JSON readers of all languages keep exactly.
  package static let largest = 1 << 53
  /// The longest text that is taken from a message.
  static let longest = 256

  /// The id that a user has written: digits alone are a number; in quotation marks, as `"1234"`, they are a text.
  package init(parsing text: String) {
    if let number = Int(text), (0...Self.largest).contains(number), text.utf8.first != UInt8(ascii: "+") {
      self = .number(number)
    } else if text.utf8.count > 2, text.hasPrefix("\""), text.hasSuffix("\"") {
      self = .text(String(text.dropFirst().dropLast()))
    } else {
      self = .text(text)
    }
  }

  /// Nil: the value is neither a number of that range nor a text that is not empty.
  package init?(_ json: JSONValue?) {
    if let number = json?.integer, (0...Self.largest).contains(number) {
      self = .number(number)
    } else if let text = json?.string, !text.isEmpty, text.utf8.count <= Self.longest {
      self = .text(text)
    } else {
      return nil
    }
  }

  package var json: JSONValue {
    switch self {
    case .number(let number): .integer(number)
    case .text(let text): .string(text)
    }
  }

  /// As events and commands name it.
  package var description: String {
    switch self {
    case .number(let number): String(number)
    case .text(let text): text
    }
  }
}
