/// The syntax of requests, RFC 9110 section 5.
enum HTTPText {
  /// True for a token: a header name, a method, a subprotocol.
  static func isToken(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  /// Characters a header must not contain, RFC 9110 section 5.5; tabs are allowed.
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }

  /// What is wrong with a header, without its value, or nil. A line break in it would start another header.
  static func problem(_ name: String, _ value: String) -> NetError? {
    guard !(name + value).utf8.contains(where: isControl) else {
      let part = isToken(name) ? "the value of the header \"\(name)\"" : "a header name"
      return NetError(.address, "\(part) contains a line break or another control character")
    }
    guard isToken(name) else {
      return NetError(.address, "a header name is empty or contains a space or another invalid character")
    }
    return nil
  }

  /// The first value of a header; the name is case-insensitive.
  static func header(_ name: String, in headers: [(name: String, value: String)]) -> String? {
    let name = name.lowercased()
    return headers.first { $0.name.lowercased() == name }?.value
  }

  /// Decodes percent escapes, RFC 3986 section 2.1; invalid ones are left as they are.
  static func unescaped(_ text: Substring) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
      if byte == UInt8(ascii: "%"), digits.count == 2 {
        bytes.append(UInt8(digits[0] << 4 | digits[1]))
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }

  /// Every value of a name in the query of a target, unescaped.
  static func values(of name: String, in target: String) -> [[UInt8]] {
    query(of: target).compactMap { $0.name == name ? unescaped($0.value) : nil }
  }

  /// The query of a target, still escaped.
  static func query(of target: String) -> [(name: Substring, value: Substring)] {
    guard let mark = target.firstIndex(of: "?") else { return [] }
    return target[target.index(after: mark)...].split(separator: "&").map { pair in
      let name = pair.prefix { $0 != "=" }
      return (name, pair[name.endIndex...].dropFirst())
    }
  }

  /// Words that mark a name as that of a credential anywhere in it, and those that do only when they stand alone.
  private static let credentials = (
    anywhere: [
      "token", "secret", "password", "passwd", "passphrase", "authorization", "credential", "signature",
      "cookie", "apikey", "accesskey", "privatekey", "appkey", "userkey",
    ],
    alone: ["auth", "sig", "sign", "pin", "bearer", "usersig", "pwd"] as Set
  )

  /// True when a header or query name is that of a credential: `Authorization`, `X-AppKey`, `access_token`, `sig`. Every name that
  /// `CredentialName` redacts in messages counts here too.
  static func isCredential(_ name: some StringProtocol) -> Bool {
    let words = name.lowercased().split { !$0.isLetter }
    let plain = words.joined()
    return plain.hasSuffix("key") || credentials.anywhere.contains { plain.contains($0) }
      || credentials.alone.contains(plain)
      || words.contains { $0 == "key" || credentials.alone.contains(String($0)) }
  }

  /// The name of a credential that anyone on the way could read, or nil.
  static func plainCredential(_ address: WebAddress, _ headers: [(name: String, value: String)]) -> String? {
    guard !address.isSecure && !address.isLoopback else { return nil }
    return headers.first { isCredential($0.name) }.map { "the header \"\($0.name)\"" }
      ?? query(of: address.target).first { isCredential($0.name) }.map { "\"\($0.name)\" of the query" }
  }

  /// Why a request must not be sent: it would carry a credential in plain text. Nil when it may be.
  static func plainProblem(
    _ address: WebAddress, _ headers: [(name: String, value: String)]
  ) -> NetError? {
    guard let name = plainCredential(address, headers) else { return nil }
    let scheme = address.scheme == .ws ? "wss:" : "https:"
    return NetError(
      .address,
      "\(name) would go to \(address.authority) in plain text; use \(scheme), or allow plaintext")
  }
}
