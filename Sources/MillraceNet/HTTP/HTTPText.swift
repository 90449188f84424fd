/// What may stand in a request, RFC 9110 section 5.
enum HTTPText {
  /// True for a word: the name of a header, a method, a sub-protocol.
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

  /// What no header may hold, RFC 9110 section 5.5; tabs are allowed.
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }

  /// What is wrong with a header, without its value; nil: nothing. A line break in it would be the beginning of another one.
  static func problem(_ name: String, _ value: String) -> NetProblem? {
    guard !(name + value).utf8.contains(where: isControl) else {
      let place = isToken(name) ? "the value of the header \"\(name)\"" : "the name of a header"
      return NetProblem(.address, "\(place) holds a line break or another control character")
    }
    guard isToken(name) else {
      return NetProblem(.address, "the name of a header is empty or holds a space or something like it")
    }
    return nil
  }

  /// Text with its percent escapes undone, RFC 3986 section 2.1; what is none stays as it is.
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

  /// What the query of a target gives a name: every value of it, unescaped.
  static func values(of name: String, in target: String) -> [[UInt8]] {
    query(of: target).compactMap { $0.name == name ? unescaped($0.value) : nil }
  }

  /// The query of a target, as it stands there.
  static func query(of target: String) -> [(name: Substring, value: Substring)] {
    guard let mark = target.firstIndex(of: "?") else { return [] }
    return target[target.index(after: mark)...].split(separator: "&").map { pair in
      let name = pair.prefix { $0 != "=" }
      return (name, pair[name.endIndex...].dropFirst())
    }
  }

  /// Words that make a name one of a credential wherever they stand in it, and those that do when they stand alone in it.
  private static let credentials = (
    anywhere: [
      "token", "secret", "password", "passwd", "passphrase", "authorization", "credential", "signature",
      "cookie", "apikey", "accesskey", "privatekey", "appkey", "userkey",
    ],
    alone: ["auth", "sig", "sign", "pin", "bearer", "usersig", "pwd"] as Set
  )

  /// True when a header, or a name in a query, says that its value is a credential: `Authorization`, `X-AppKey`, `access_token`, `sig`.
  /// What is hidden by its name in words of the program (`CredentialName`) is one here as well.
  static func isCredential(_ name: some StringProtocol) -> Bool {
    let words = name.lowercased().split { !$0.isLetter }
    let plain = words.joined()
    return plain.hasSuffix("key") || credentials.anywhere.contains { plain.contains($0) }
      || credentials.alone.contains(plain)
      || words.contains { $0 == "key" || credentials.alone.contains(String($0)) }
  }

  /// What of a request is a credential that whoever is on the way could read, by its name; nil: nothing.
  static func plainCredential(_ address: WebAddress, _ headers: [(name: String, value: String)]) -> String? {
    guard !address.isSecure && !address.isLoopback else { return nil }
    return headers.first { isCredential($0.name) }.map { "the header \"\($0.name)\"" }
      ?? query(of: address.target).first { isCredential($0.name) }.map { "\"\($0.name)\" of the query" }
  }

  /// Why a request must not go out: it holds a credential in plain text. nil: it may.
  static func plainProblem(
    _ address: WebAddress, _ headers: [(name: String, value: String)]
  ) -> NetProblem? {
    guard let name = plainCredential(address, headers) else { return nil }
    let cure = address.scheme == .ws ? "wss:" : "https:"
    return NetProblem(
      .address,
      "\(name) would go to \(address.place) in plain text; begin the address with \(cure), or allow plain")
  }
}
