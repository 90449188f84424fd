/// What a hub says about a file that it serves. Its name and its type are a stranger's words.
enum RoomFileHeaders {
  /// Types that a file keeps: pictures, sound, PDF and plain text, none of which runs anything. SVG can, and so is not among them.
  private static let types: Set<String> = [
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp",
    "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm", "audio/flac", "audio/aac", "audio/mp4",
    "application/pdf", "text/plain", "text/csv",
  ]
  /// The type of everything else.
  private static let bytes = "application/octet-stream"

  /// The type under which a file is served.
  /// - Parameter claimed: as whoever shares it says; parameters are left out.
  static func type(_ claimed: String?) -> String {
    let essence: String = (claimed ?? "").prefix { $0 != ";" }.filter { $0 != " " }
    let known = essence.lowercased()
    return types.contains(known) ? known : bytes
  }

  /// That a file is to be saved, and under which name: RFC 6266, with the name by RFC 8187, and for older clients in ASCII.
  /// Control characters, line breaks and marks of direction (UAX #9), by which one name looks like another, are replaced in both.
  static func disposition(_ name: String) -> String {
    let plain = String(name.unicodeScalars.map { isPlain($0) ? Character($0) : "_" })
    return "attachment; filename=\"\(plain)\"; filename*=UTF-8''\(encoded(undisguised(name)))"
  }

  private static func undisguised(_ name: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in name.unicodeScalars { result.append(isDisguise(scalar) ? "_" : scalar) }
    return String(result)
  }

  private static func isDisguise(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.isASCII else { return false }
    return isAlphanumeric(UInt8(truncatingIfNeeded: scalar.value)) || "-_.".unicodeScalars.contains(scalar)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }

  /// RFC 8187 section 3.2.1, `value-chars`: every byte that is no `attr-char` is escaped.
  private static func encoded(_ name: String) -> String {
    var result: [UInt8] = []
    for byte in name.utf8 {
      if isAlphanumeric(byte) || "!#$&+-.^_`|~".utf8.contains(byte) {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 0x0F)]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }
}
