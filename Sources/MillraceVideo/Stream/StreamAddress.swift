internal import MillraceCore

/// Where a live stream is: an RTMP address, checked, and how it may be spoken of.
///
/// Whoever knows an address to publish to can publish, so nothing of it is shown but scheme, host and application: not the stream's
/// name, which services call its key, nor a user, a password or what follows a question mark.
struct StreamAddress: Sendable {
  /// As it was given; for the library alone.
  let url: String
  /// As messages name it, such as `"rtmp://live.example.org/app/•••"`.
  let name: String
  /// What has to be taken out of the library's words.
  let secrets: Secrets
  /// The host alone, without its port.
  let host: String
  /// Whether TLS lies under it.
  let isSecure: Bool
  /// The file of certificates (PEM) that are believed in place of the system's; nil: the system's.
  let roots: String?

  /// Schemes that are spoken.
  static let schemes = ["rtmp", "rtmps"]

  /// Checks what a node's parameters say; the file of certificates is not looked at before `checkRoots`.
  init(_ values: ParameterValues) throws(NodeProblem) {
    try self.init(values.string("url"), roots: values.has("roots") ? values.string("roots") : nil)
  }

  /// Checks an address, given as the parameter `url`.
  private init(_ url: String, roots: String?) throws(NodeProblem) {
    guard let mark = url.firstRange(of: "://"), Self.schemes.contains(url[..<mark.lowerBound].lowercased())
    else {
      throw Self.refusal("does not begin with rtmp: or rtmps:")
    }
    let rest = url[mark.upperBound...]
    guard !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
      throw Self.refusal("has a space or a control character in it")
    }
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    guard host.contains(where: { $0 != ":" }), host.first != ":" else {
      throw Self.refusal("names no host")
    }
    let path = rest.dropFirst(authority.count)
    let parts = path.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
    guard parts.count >= 2 else {
      throw Self.refusal("names no stream of an application")
    }
    isSecure = url[..<mark.lowerBound].lowercased() == "rtmps"
    guard isSecure || roots == nil else {
      throw NodeProblem(
        "nothing is encrypted with rtmp:, and there is no certificate", parameter: "roots",
        cure: "leave it out, or begin the address with rtmps:")
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

  /// The brackets of IPv6 stay.
  private static func withoutPort(_ host: Substring) -> Substring {
    let end = host.lastIndex(of: "]") ?? host.startIndex
    return host[..<(host[end...].firstIndex(of: ":") ?? host.endIndex)]
  }

  private static func refusal(_ text: String) -> NodeProblem {
    NodeProblem(
      "the address \(text)", parameter: "url", cure: "give one such as \"rtmp://live.example.org/app/stream\""
    )
  }
}
