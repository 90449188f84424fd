/// The name of a user, a room, a peer or a call: 1 to 64 of the letters `A` to `Z` and `a` to `z`, the digits, `-` and `_`.
///
/// It is safe in a path, an address, a log and a page as it is.
public struct RoomName: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The name as it is written.
  public let rawValue: String

  /// Nil when the text is no name.
  public init?(rawValue: String) {
    // Bytes, not characters: Unicode has letters that equal those of ASCII.
    guard (1...RoomLimits.nameCharacters).contains(rawValue.utf8.count),
      rawValue.utf8.allSatisfy(Self.isAllowed)
    else { return nil }
    self.rawValue = rawValue
  }

  /// Nil when the text is no name.
  public init?(_ text: String) { self.init(rawValue: text) }

  public var description: String { rawValue }

  /// Byte by byte. When two peers offer at once, the one with the smaller id takes its offer back.
  public static func < (left: RoomName, right: RoomName) -> Bool {
    left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
