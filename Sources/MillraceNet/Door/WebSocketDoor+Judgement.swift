/// What a door says of a request.
extension WebSocketDoor {
  /// What of a request matters at the door.
  struct Request {
    /// Path and query.
    var target = "/"
    /// Every header of the name, as they came.
    var hosts: [String] = []
    var origins: [String] = []
    var authorizations: [String] = []
    /// TCP comes from this machine.
    var isFromThisMachine = false
  }

  /// Longest piece of what a visitor sent that the server's owner is shown.
  private static let longestDetail = 100

  /// Why a visitor is not let in; nil: they may come in.
  /// - Parameter isOwnName: true for names the server goes by, in lower case.
  func refusal(of request: Request, isOwnName: (String) -> Bool) -> Refusal? {
    guard request.hosts.count == 1, let host = Self.host(in: request.hosts[0]) else {
      return Refusal(
        kind: .host, status: 400, text: "a request has exactly one Host header, with a name or an address")
    }
    guard isKnown(host, isOwnName) else {
      return Refusal(
        kind: .host, status: 403,
        text: "this server does not go by that name; its \"hosts\" may name it",
        detail: Self.shown(host))
    }
    guard request.origins.count <= 1 else {
      return Refusal(kind: .origin, status: 403, text: "a request has at most one Origin header")
    }
    if let origin = request.origins.first, !isAllowed(origin, host, request.isFromThisMachine) {
      return Refusal(
        kind: .origin, status: 403,
        text: "pages of that site may not connect; the server's \"origins\" may name it",
        detail: Self.shown(origin))
    }
    guard isTokenHeld(request) else {
      return Refusal(
        kind: .token, status: 401,
        text:
          "the token is missing or wrong; it goes into \"Authorization: Bearer\" or \"token=\" of the query")
    }
    return nil
  }

  /// The name in a header `Host`, without its port, in lower case; nil: it is none.
  private static func host(in header: String) -> String? {
    guard !header.contains(where: { "/?#".contains($0) }), let address = try? WebAddress("http://" + header)
    else { return nil }
    return withoutDot(address.host)
  }

  /// A name may end with the dot of the root, and means the same.
  private static func withoutDot(_ host: String) -> String {
    host.hasSuffix(".") ? String(host.dropLast()) : host
  }

  private func isKnown(_ host: String, _ isOwnName: (String) -> Bool) -> Bool {
    // Digits and `localhost` need no look-up that somebody else could answer.
    host == "localhost" || ServerName(host).isDigits || isOwnName(host)
      || hosts.contains { $0 == "*" || Self.withoutDot($0.lowercased()) == host }
  }

  private func isAllowed(_ origin: String, _ host: String, _ isFromThisMachine: Bool) -> Bool {
    let known = Self.canonical(origin)
    if origins.contains(where: { $0 == "*" || Self.canonical($0) == known }) { return true }
    guard let page = try? WebAddress(origin) else { return false }
    return Self.withoutDot(page.host) == host || isFromThisMachine && page.isLoopback
  }

  /// An origin as it can be compared: the usual port of a scheme may be left out.
  private static func canonical(_ origin: String) -> String {
    guard let address = try? WebAddress(origin) else { return origin.lowercased() }
    return "\(address.scheme.rawValue)://\(address.place)"
  }

  private func isTokenHeld(_ request: Request) -> Bool {
    guard let token else { return true }
    let secret = Array(token.utf8)
    let offered =
      request.authorizations.compactMap { header -> [UInt8]? in
        guard header.lowercased().hasPrefix("bearer ") else { return nil }
        return Array(header.utf8.dropFirst(7).drop { $0 == UInt8(ascii: " ") })
      } + HTTPText.values(of: "token", in: request.target)
    var isHeld = false
    for candidate in offered where Self.areEqual(secret, candidate) { isHeld = true }
    return isHeld
  }

  /// Compares in a time that says nothing of where two texts begin to differ.
  static func areEqual(_ secret: [UInt8], _ offered: [UInt8]) -> Bool {
    guard !secret.isEmpty else { return offered.isEmpty }
    var difference = secret.count ^ offered.count
    for index in offered.indices { difference |= Int(offered[index] ^ secret[index % secret.count]) }
    return difference == 0
  }

  /// What a visitor sent, made safe for a log: visible ASCII only, and cut.
  private static func shown(_ text: String) -> String {
    String(
      decoding: text.utf8.prefix(longestDetail).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") },
      as: UTF8.self)
  }
}
