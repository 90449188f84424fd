/// References relative to an address, such as the `Location` of a response.
extension WebAddress {
  /// The address a reference leads to, RFC 3986 section 5.2: `https://host/path`, `//host/path`, `/path`, `path`, `../path` or `?query`.
  /// The fragment is ignored.
  public func resolving(_ reference: String) throws(NetError) -> WebAddress {
    let text = String(decoding: reference.utf8.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
    if Self.hasScheme(text) { return try WebAddress(text) }
    if text.hasPrefix("//") { return try WebAddress("\(scheme.rawValue):\(text)") }
    let base = "\(scheme.rawValue)://\(authority)"
    let path = String(decoding: target.utf8.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
    guard !text.isEmpty else { return self }
    if text.hasPrefix("?") { return try WebAddress(base + path + text) }
    let end = text.utf8.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
    let folder = path[..<(path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)]
    let whole = text.hasPrefix("/") ? String(text[..<end]) : "\(folder)/\(text[..<end])"
    return try WebAddress(base + Self.withoutDots(whole) + text[end...])
  }

  /// Scheme, host and port: what RFC 6454 calls the origin.
  func hasSameOrigin(as other: WebAddress) -> Bool {
    isSecure == other.isSecure && host == other.host && port == other.port
  }

  /// True when the text begins with a scheme, RFC 3986 section 3.1.
  private static func hasScheme(_ text: String) -> Bool {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex else {
      return false
    }
    return text.utf8[..<colon].allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
        true
      default: false
      }
    }
  }

  /// Resolves the segments `.` and `..` of a path that begins with a slash, RFC 3986 section 5.2.4. None leads above the root.
  private static func withoutDots(_ path: String) -> String {
    let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var kept: [Substring] = []
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      switch segment {
      case ".": if isLast { kept.append("") }
      case "..":
        _ = kept.popLast()
        if isLast { kept.append("") }
      default: kept.append(segment)
      }
    }
    return "/" + kept.joined(separator: "/")
  }
}
