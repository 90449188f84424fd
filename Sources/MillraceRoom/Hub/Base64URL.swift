internal import MillraceJSON

/// Base64 with the alphabet for addresses and without padding: RFC 4648 section 5.
enum Base64URL {
  static func encode(_ bytes: [UInt8]) -> String {
    let characters = Base64.encode(bytes).utf8.compactMap { byte -> UInt8? in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): nil
      default: byte
      }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// Nil for anything that `encode` does not write: one value has one text.
  static func decode(_ text: Substring) -> [UInt8]? {
    var characters: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "-"): characters.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): characters.append(UInt8(ascii: "/"))
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      default: characters.append(byte)
      }
    }
    while !characters.count.isMultiple(of: 4) { characters.append(UInt8(ascii: "=")) }
    return Base64.decode(String(decoding: characters, as: UTF8.self))
  }
}
