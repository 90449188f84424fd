/// Texts that nobody can guess: addresses of resources, entity tags, ids of requests.
enum SecretText {
  /// So many random bytes as hexadecimal digits, from the system's cryptographic generator.
  static func random(bytes count: Int) -> String {
    var generator = SystemRandomNumberGenerator()
    var text = ""
    for _ in 0..<count {
      let byte = UInt8.random(in: 0...255, using: &generator)
      text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
    }
    return text
  }
}

/// What a peer wrote, made safe for an event.
enum ServerText {
  /// The longest excerpt, in bytes.
  static let most = 200

  /// Printable ASCII only, and truncated.
  static func shown(_ text: String) -> String {
    String(
      decoding: text.utf8.prefix(most).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") },
      as: UTF8.self)
  }
}
