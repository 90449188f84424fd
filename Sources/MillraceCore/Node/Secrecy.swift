extension ParameterContract {
  /// How much of a parameter's value is never shown. The default value of a parameter is not secret.
  public enum Secrecy: String, Sendable, Hashable, CaseIterable {
    /// Nothing.
    case none
    /// All of it: a key, a token.
    case whole
    /// In an address: the user and password, the values in the query, the fragment and, for `rtmp:`, what follows the application,
    /// which is the stream key. Scheme, host and path are shown. A text that is not an address is hidden, unless it is a short word.
    case address
    /// In `NAME=value` or `Name: value`: the value. In a JSON object: all texts and numbers.
    case assigned
    /// In a JSON object: the texts of members with the name of a credential (`token`, `appKey`, `password`), and all texts inside
    /// them. In `NAME=value`: the value, when the name is that of a credential.
    case credentials
  }

  /// True when at least a part of its value is never shown.
  public var isSecret: Bool { secrecy != .none }

  /// The secret parts of a value, which must not appear in any text.
  public func hiddenTexts(of value: ParameterValue) -> Set<String> {
    guard isSecret, value != defaultValue else { return [] }
    return Set(value.texts.flatMap { SecretParts($0, secrecy).hidden })
  }

  /// The value with its secret parts replaced by a mark.
  public func shown(_ value: ParameterValue) -> ParameterValue {
    guard isSecret, value != defaultValue else { return value }
    switch value {
    case .string(let text): return .string(SecretParts(text, secrecy).shown)
    case .list(let values): return .list(values.map { shown($0) })
    default: return .string(Secrets.mark)
    }
  }
}

extension ParameterValue {
  /// Its texts as they would appear in a message; for a list, those of its items.
  public var texts: [String] {
    switch self {
    case .string(let text): [text]
    case .list(let values): values.flatMap(\.texts)
    default: [description]
    }
  }
}

/// The secret parts of one text, and the text without them.
struct SecretParts {
  private(set) var hidden: Set<String> = []
  private(set) var shown = ""

  init(_ text: String, _ secrecy: ParameterContract.Secrecy) {
    switch secrecy {
    case .none: shown = text
    case .whole: hideAll(text)
    case .address: take(address: text)
    case .assigned: take(assigned: text) { _ in true }
    case .credentials: take(assigned: text, numbers: false) { CredentialName.matches($0) }
    }
  }

  private mutating func hideAll(_ text: String) {
    hidden.insert(text)
    shown = text.isEmpty ? "" : Secrets.mark
  }

  /// Hides a part. One of only a few bytes is secret only together with the text before it, because it occurs in many other texts.
  private mutating func hide(_ part: Substring, after lead: String) {
    guard !part.isEmpty else { return }
    guard part.utf8.count >= Secrets.minBytes else {
      hidden.insert(lead + part)
      return
    }
    hidden.insert(String(part))
    if let plain = Self.unescaped(part) { hidden.insert(plain) }
  }

  /// The part without percent-encoding; nil when it has none.
  private static func unescaped(_ part: Substring) -> String? {
    guard part.utf8.contains(UInt8(ascii: "%")) else { return nil }
    let bytes = Array(part.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
        let byte = UInt8(String(decoding: bytes[index + 1...index + 2], as: UTF8.self), radix: 16)
      {
        result.append(byte)
        index += 3
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return String(validating: result, as: UTF8.self)
  }

  // MARK: Addresses

  private mutating func take(address text: String) {
    guard let mark = text.firstRange(of: "://") else {
      // `environment` (for proxies) and short words are not keys. Anything else may be a key in the wrong place.
      if text == "environment" || Secrets.isWord(text) { shown = text } else { hideAll(text) }
      return
    }
    let scheme = text[..<mark.lowerBound]
    let rest = text[mark.upperBound...]
    let authority = rest.prefix { !"/?#".contains($0) }
    let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    let path = rest[authority.endIndex...].prefix { $0 != "?" && $0 != "#" }
    shown = "\(scheme)://"
    let port = host.lastIndex(of: "]").map { host[$0...].dropFirst() } ?? host.drop { $0 != ":" }
    let isBroken = rest.contains("@") && !port.dropFirst().allSatisfy(\.isNumber)
    if host.startIndex == authority.startIndex && (path.contains("@") || isBroken) {
      // A password that contains a slash or a question mark: its end is unknown.
      for part in rest.split(whereSeparator: { "/?#@:".contains($0) })
      where part.utf8.count >= Secrets.minBytes {
        hide(part, after: "")
      }
      hidden.insert(String(rest))
      shown += Secrets.mark
      return
    }
    if host.startIndex != authority.startIndex {
      take(user: authority[..<authority.index(before: host.startIndex)])
    }
    shown += host
    if ["rtmp", "rtmps", "rtmpt", "rtmpe"].contains(scheme.lowercased()) {
      return take(stream: rest[authority.endIndex...])
    }
    shown += path
    take(query: rest[path.endIndex...])
  }

  private mutating func take(user: Substring) {
    hide(user, after: "//")
    let colon = user.firstIndex(of: ":") ?? user.endIndex
    if colon != user.endIndex {
      hide(user[..<colon], after: "//")
      hide(user[colon...].dropFirst(), after: ":")
    }
    shown += "\(Secrets.mark)@"
  }

  /// The application is shown; the stream key and its query are hidden.
  private mutating func take(stream path: Substring) {
    let application = path.drop { $0 == "/" }.prefix { !"/?#".contains($0) }
    shown += "/\(application)"
    let key = path[application.endIndex...].drop { $0 == "/" }
    guard !key.isEmpty else { return }
    shown += "/\(Secrets.mark)"
    hide(key, after: "\(application)/")
    for part in key.split(whereSeparator: { "/?&=#".contains($0) }) {
      // Only the node knows whether `stream` is the key; elsewhere it is an ordinary word.
      if Secrets.isWord(String(part)) {
        hidden.insert("\(application)/\(part)")
      } else {
        hide(part, after: "/")
      }
    }
    // A single word is the key only after its application.
    if Secrets.isWord(String(key)) {
      hidden.remove(String(key))
      hidden.insert("\(application)/\(key)")
    }
  }

  private mutating func take(query: Substring) {
    var rest = query
    while let sign = rest.first {
      shown.append(sign)
      rest = rest.dropFirst()
      let piece = rest.prefix { !"?&;#".contains($0) }
      rest = rest[piece.endIndex...]
      guard let equals = piece.firstIndex(of: "=") else {
        hide(piece, after: String(sign))
        if !piece.isEmpty { shown += Secrets.mark }
        continue
      }
      let name = piece[...equals]
      hide(piece[equals...].dropFirst(), after: String(name))
      shown += name + (name.endIndex == piece.endIndex ? "" : Secrets.mark)
    }
  }

  // MARK: Names and values

  private mutating func take(
    assigned text: String, numbers: Bool = true, _ isSecret: @escaping (Substring) -> Bool
  ) {
    if text.first(where: { $0 != " " && $0 != "\n" && $0 != "\t" }) == "{" {
      var reader = SecretJSON(text, numbers: numbers, isSecret)
      reader.read()
      for part in reader.hidden { hide(part.text[...], after: part.lead) }
      shown = reader.shown
      return
    }
    guard let sign = text.firstIndex(where: { $0 == "=" || $0 == ":" }) else {
      if isSecret(text[...]) { hideAll(text) } else { shown = text }
      return
    }
    let name = text[..<sign]
    guard isSecret(name) else {
      shown = text
      return
    }
    let space = text[text.index(after: sign)...].prefix { $0 == " " }
    let value = text[space.endIndex...]
    shown = text[..<space.endIndex] + (value.isEmpty ? "" : Secrets.mark)
    hide(value, after: String(text[..<space.endIndex]))
    // `Bearer sk-…`: the text after the scheme.
    if let gap = value.firstIndex(of: " "), value[..<gap].utf8.allSatisfy(Secrets.isLetter) {
      hide(value[gap...].drop { $0 == " " }, after: "\(value[...gap])")
    }
    // A cookie, or a scheme with attributes.
    for piece in value.split(whereSeparator: { ";, ".contains($0) }) {
      guard let equals = piece.firstIndex(of: "="), equals > piece.startIndex else { continue }
      let part = piece[equals...].dropFirst().drop { $0 == "\"" }
      hide(part.last == "\"" ? part.dropLast() : part, after: String(piece[...equals]))
    }
  }
}

extension ParameterContract.Secrecy {
  /// The secrecy guessed from a parameter's name, for when there is no contract.
  public static func guessed(_ name: some StringProtocol) -> Self {
    if CredentialName.matches(name) { return .whole }
    if name.lowercased().hasSuffix("url") { return .address }
    return switch name {
    case "address", "endpoint", "proxy", "provider": .address
    case "headers", "environment": .assigned
    default: .none
    }
  }

  /// The secret parts of a text, which must not appear in any other text.
  public func hiddenTexts(of text: String) -> Set<String> { SecretParts(text, self).hidden }

  /// True when a fragment of JSON contains a secret: a value of a member with the name of a credential, or a secret in an address or a
  /// text. A reference such as `${env:KEY}` is not a secret.
  public static func hasSecrets(inJSON text: String) -> Bool {
    var reader = SecretJSON(text, numbers: true) { [.whole, .assigned].contains(guessed($0)) }
    reader.read()
    if reader.hidden.contains(where: { !$0.text.hasPrefix("${") && !$0.text.isEmpty }) { return true }
    return reader.plain.contains { text in
      !text.contains("${")
        && (!SecretParts(text, .credentials).hidden.isEmpty
          || (text.contains("://") && !SecretParts(text, .address).hidden.isEmpty))
    }
  }
}

/// Names of credentials.
public enum CredentialName {
  private static let parts = [
    "token", "secret", "password", "passwd", "passphrase", "authorization", "credential", "signature",
    "cookie",
    "apikey", "accesskey", "privatekey", "appkey", "userkey", "usersig",
  ]
  private static let words: Set = ["key", "auth", "sig", "sign", "pin", "bearer", "pwd"]

  /// True for `token`, `api_key`, `X-Auth-Token`, `streamKey`, `Password`.
  public static func matches(_ name: some StringProtocol) -> Bool {
    let plain = String(
      decoding: name.utf8.compactMap { byte -> UInt8? in
        Secrets.isLetter(byte) ? byte | 0x20 : nil
      }, as: UTF8.self)
    return words.contains(plain) || plain.hasSuffix("key") || parts.contains { plain.contains($0) }
  }
}
