/// STUN and TURN servers in `Link` headers: `<turn:turn.example.net?transport=udp>; rel="ice-server"; username="u"; credential="p"`.
/// Source: RFC 9725 section 4.6, RFC 8288 section 3 for the syntax.
enum ICEServerLinks {
  /// The most servers that are read.
  static let most = 16

  /// The servers in the values of the header. What is no such link is skipped.
  static func read(_ values: [String]) -> [SignalServer] {
    var servers: [SignalServer] = []
    for value in values {
      for link in split(value[...], at: UInt8(ascii: ",")) where servers.count < most {
        if let server = server(link), !servers.contains(server) { servers.append(server) }
      }
    }
    return servers
  }

  /// The values of `Link` headers for servers, one each.
  static func write(_ servers: [SignalServer]) -> [String] {
    servers.map { server in
      var text = "<\(server.url)>; rel=\"ice-server\""
      if let user = server.user { text += "; username=\(quoted(user))" }
      if let password = server.password {
        text += "; credential=\(quoted(password)); credential-type=\"password\""
      }
      return text
    }
  }

  private static func server(_ link: Substring) -> SignalServer? {
    let parts = split(link, at: UInt8(ascii: ";")).map { trimmed($0) }
    guard let target = parts.first, target.hasPrefix("<"), target.hasSuffix(">") else { return nil }
    let url = String(target.dropFirst().dropLast())
    let scheme = url.prefix { $0 != ":" }.lowercased()
    guard ["stun", "stuns", "turn", "turns"].contains(scheme), !url.utf8.contains(where: { $0 <= 0x20 })
    else {
      return nil
    }
    var (isServer, user, password): (Bool, String?, String?) = (false, nil, nil)
    for part in parts.dropFirst() {
      let name = trimmed(part.prefix { $0 != "=" }).lowercased()
      let value = unquoted(trimmed(part.dropFirst(part.prefix { $0 != "=" }.count + 1)))
      switch name {
      case "rel": isServer = value.lowercased().split(separator: " ").contains("ice-server")
      case "username": user = value
      case "credential": password = value
      default: break
      }
    }
    return isServer ? SignalServer(url: url, user: user, password: password) : nil
  }

  // MARK: Syntax

  /// The parts between separators that stand neither in quotes nor in angle brackets.
  private static func split(_ text: Substring, at separator: UInt8) -> [Substring] {
    var parts: [Substring] = []
    var (start, isQuoted, isEscaped, isAddress) = (text.startIndex, false, false, false)
    for index in text.utf8.indices {
      let byte = text.utf8[index]
      if isEscaped {
        isEscaped = false
      } else if isQuoted {
        if byte == UInt8(ascii: "\\") { isEscaped = true }
        if byte == UInt8(ascii: "\"") { isQuoted = false }
      } else if isAddress {
        if byte == UInt8(ascii: ">") { isAddress = false }
      } else if byte == UInt8(ascii: "\"") {
        isQuoted = true
      } else if byte == UInt8(ascii: "<") {
        isAddress = true
      } else if byte == separator {
        parts.append(text[start..<index])
        start = text.utf8.index(after: index)
      }
    }
    parts.append(text[start...])
    return parts
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var view = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
    while view.last == 0x20 || view.last == 0x09 { view = view.dropLast() }
    return Substring(view)
  }

  private static func unquoted(_ text: Substring) -> String {
    guard text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return String(text) }
    var bytes: [UInt8] = []
    var isEscaped = false
    for byte in text.utf8.dropFirst().dropLast() {
      if byte == UInt8(ascii: "\\"), !isEscaped {
        isEscaped = true
      } else {
        bytes.append(byte)
        isEscaped = false
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func quoted(_ text: String) -> String {
    var bytes = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
      bytes.append(byte)
    }
    return String(decoding: bytes + [UInt8(ascii: "\"")], as: UTF8.self)
  }
}
