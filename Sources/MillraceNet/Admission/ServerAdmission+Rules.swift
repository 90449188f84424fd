/// How the admission rules apply to a request.
extension ServerAdmission {
  /// The parts of a request that the rules look at.
  struct Request {
    /// Path and query.
    var target = "/"
    /// Every header of each name, in order.
    var hosts: [String] = []
    var origins: [String] = []
    var authorizations: [String] = []
    /// The TCP connection comes from a loopback address.
    var isFromLoopback = false
    /// HTTP/1.0, in which a request needs no `Host`; the health checks of some load balancers are of this kind.
    var isHTTP10 = false
  }

  /// The longest excerpt of a request that is reported to the server's owner.
  private static let longestDetail = 100

  /// Why a request is refused, or nil when it is admitted.
  /// - Parameter isOwnName: returns true for names of this server, in lower case.
  func refusal(of request: Request, isOwnName: (String) -> Bool) -> Refusal? {
    guard let host = host(of: request) else {
      return Refusal(
        kind: .host, status: 400, text: "a request needs exactly one Host header with a host name or address")
    }
    guard isKnown(host, isOwnName) else {
      return Refusal(
        kind: .host, status: 403,
        text: "this host name is not allowed; add it to the server's \"hosts\"",
        detail: Self.shown(host))
    }
    guard request.origins.count <= 1 else {
      return Refusal(kind: .origin, status: 403, text: "a request may have at most one Origin header")
    }
    if let origin = request.origins.first, !isAllowed(origin, host, request) {
      return Refusal(
        kind: .origin, status: 403,
        text: "this origin is not allowed; add it to the server's \"origins\"",
        detail: Self.shown(origin))
    }
    guard isTokenValid(request) else {
      return Refusal(
        kind: .token, status: 401,
        text:
          "missing or wrong token; send it as \"Authorization: Bearer\" or as \"token=\" in the query")
    }
    return nil
  }

  /// The host name of a request, or nil when it has none that is valid. Empty where none is needed.
  private func host(of request: Request) -> String? {
    if request.hosts.isEmpty && request.isHTTP10 && hosts.contains("*") { return "" }
    return request.hosts.count == 1 ? Self.host(in: request.hosts[0]) : nil
  }

  /// The host name in a `Host` header, without port and in lower case, or nil when the header is not valid.
  private static func host(in header: String) -> String? {
    guard !header.contains(where: { "/?#".contains($0) }), let address = try? WebAddress("http://" + header)
    else { return nil }
    return withoutTrailingDot(address.host)
  }

  /// A fully qualified name may end with the dot of the root.
  private static func withoutTrailingDot(_ host: String) -> String {
    host.hasSuffix(".") ? String(host.dropLast()) : host
  }

  private func isKnown(_ host: String, _ isOwnName: (String) -> Bool) -> Bool {
    // A numeric address and `localhost` need no DNS, so an attacker cannot point them here.
    host == "localhost" || ServerName(host).isDigits || isOwnName(host)
      || hosts.contains { $0 == "*" || Self.withoutTrailingDot($0.lowercased()) == host }
  }

  private func isAllowed(_ origin: String, _ host: String, _ request: Request) -> Bool {
    let known = Self.canonical(origin)
    if origins.contains(where: { $0 == "*" || Self.canonical($0) == known }) { return true }
    guard let page = try? WebAddress(origin) else { return false }
    switch pages {
    case .ofHost:
      return Self.withoutTrailingDot(page.host) == host || request.isFromLoopback && page.isLoopback
    case .ofServer(let isSecure):
      guard page.isSecure || !isSecure, Self.withoutTrailingDot(page.host) == host else { return false }
      return page.port == Self.port(in: request.hosts.first ?? "", of: page)
    }
  }

  /// The port in a `Host` header; the default one of the page's scheme where there is none, as TLS may end before the server.
  private static func port(in header: String, of page: WebAddress) -> Int? {
    (try? WebAddress("\(page.scheme.rawValue)://\(header)"))?.port
  }

  /// An origin in a form that can be compared: with its port, which may be left out when it is the scheme's default.
  private static func canonical(_ origin: String) -> String {
    guard let address = try? WebAddress(origin) else { return origin.lowercased() }
    return "\(address.scheme.rawValue)://\(address.authority)"
  }

  private func isTokenValid(_ request: Request) -> Bool {
    guard let token else { return true }
    let secret = Array(token.utf8)
    let offered =
      request.authorizations.compactMap { header -> [UInt8]? in
        guard header.lowercased().hasPrefix("bearer ") else { return nil }
        return Array(header.utf8.dropFirst(7).drop { $0 == UInt8(ascii: " ") })
      } + HTTPText.values(of: "token", in: request.target)
    var isValid = false
    for candidate in offered where Self.areEqual(secret, candidate) { isValid = true }
    return isValid
  }

  /// Compares in a time that does not depend on where the two differ.
  package static func areEqual(_ secret: [UInt8], _ offered: [UInt8]) -> Bool {
    guard !secret.isEmpty else { return offered.isEmpty }
    var difference = secret.count ^ offered.count
    for index in offered.indices { difference |= Int(offered[index] ^ secret[index % secret.count]) }
    return difference == 0
  }

  /// Client input made safe for a log: printable ASCII only, and truncated.
  private static func shown(_ text: String) -> String {
    String(
      decoding: text.utf8.prefix(longestDetail).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") },
      as: UTF8.self)
  }
}
