internal import MillraceCore

/// A validated RTMP address of a live stream, and the form in which it may be shown.
///
/// Knowing the address of a stream is enough to publish to it. Only scheme, host and application are ever shown, not the stream's name
/// (services call it the stream key), nor user, password or query.
struct StreamAddress: Sendable {
  /// The original address; for the library only.
  let url: String
  /// The form for messages, such as `"rtmp://live.example.org/app/•••"`.
  let name: String
  /// Secrets to remove from the library's messages.
  let secrets: Secrets
  /// The host without port.
  let host: String
  /// True if it uses TLS.
  let isSecure: Bool
  /// A file of trusted certificates (PEM) that replaces the system's; nil: the system's.
  let roots: String?

  /// Supported schemes.
  static let schemes = ["rtmp", "rtmps"]

  /// Longest address in bytes: more than any service's, and little enough to search every text for it.
  static let longest = 2_048

  /// The address in a node's parameters; nil if it has none. The certificate file is not read before `checkRoots`.
  static func given(in values: ParameterValues) throws(NodeProblem) -> StreamAddress? {
    guard values.has("url") else { return nil }
    let roots = values.has("roots") ? values.string("roots") : nil
    let address = try StreamAddress(values.string("url"), roots: roots)
    guard address.isSecure || roots == nil else {
      throw NodeProblem(
        "certificates apply to rtmps: only", parameter: "roots",
        cure: "remove \"roots\", or use an rtmps: address")
    }
    return address
  }

  /// Checks an address.
  /// - Parameter roots: trusted certificates, used with TLS.
  init(_ url: String, roots: String?) throws(NodeProblem) {
    guard url.utf8.count <= Self.longest else {
      throw Self.refusal("has more than \(Self.longest) bytes")
    }
    guard let mark = url.firstRange(of: "://"), Self.schemes.contains(url[..<mark.lowerBound].lowercased())
    else {
      throw Self.refusal("does not start with rtmp: or rtmps:")
    }
    let rest = url[mark.upperBound...]
    guard !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
      throw Self.refusal("contains a space or a control character")
    }
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    guard host.contains(where: { $0 != ":" }), host.first != ":" else {
      throw Self.refusal("has no host")
    }
    let path = rest.dropFirst(authority.count)
    let parts = path.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
    guard parts.count >= 2 else {
      throw Self.refusal("has no stream name after the application")
    }
    isSecure = url[..<mark.lowerBound].lowercased() == "rtmps"
    self.url = url
    self.roots = isSecure ? roots : nil
    self.host = String(Self.withoutPort(host))
    name = "\"\(url[..<mark.lowerBound].lowercased())://\(host)/\(parts[0])/\(Secrets.mark)\""
    let key = path.drop { $0 == "/" }.dropFirst(parts[0].count).drop { $0 == "/" }
    var hidden = Set([url, String(key)] + parts.dropFirst().map(String.init))
    for piece in key.split(whereSeparator: { "?&=#".contains($0) }) { hidden.insert(String(piece)) }
    if host.startIndex != authority.startIndex {
      let user = authority[..<authority.index(before: host.startIndex)]
      hidden.formUnion([String(user)] + user.split(separator: ":").map(String.init))
    }
    secrets = Secrets(hidden)
  }

  /// Keeps the brackets of IPv6.
  private static func withoutPort(_ host: Substring) -> Substring {
    let end = host.lastIndex(of: "]") ?? host.startIndex
    return host[..<(host[end...].firstIndex(of: ":") ?? host.endIndex)]
  }

  private static func refusal(_ text: String) -> NodeProblem {
    NodeProblem(
      "the address \(text)", parameter: "url",
      cure: "use an address such as \"rtmp://live.example.org/app/stream\""
    )
  }
}
