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

  /// Checks a node's parameters; the certificate file is not read before `checkRoots`.
  init(_ values: ParameterValues) throws(NodeProblem) {
    try self.init(values.string("url"), roots: values.has("roots") ? values.string("roots") : nil)
  }

  /// Checks an address given as the parameter `url`.
  private init(_ url: String, roots: String?) throws(NodeProblem) {
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
    guard isSecure || roots == nil else {
      throw NodeProblem(
        "certificates apply to rtmps: only", parameter: "roots",
        cure: "remove \"roots\", or use an rtmps: address")
    }
    self.url = url
    self.roots = roots
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
