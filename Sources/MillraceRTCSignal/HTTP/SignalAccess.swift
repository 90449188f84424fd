internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet

/// How the requests of a form of signalling reach its server, and what they carry to prove who sends them.
///
/// The bearer and the headers of the settings go to the host of the settings and to no other, whatever a redirect or a `Location` says.
struct SignalAccess: Sendable {
  let url: WebAddress
  let bearer: String?
  let headers: [(name: String, value: String)]
  /// In milliseconds.
  let timeout: Int
  let roots: String?
  let proxy: NetProxy
  let verify: Bool
  let plain: Bool

  /// Headers that the forms of signalling set themselves.
  private static let own: Set<String> = ["accept", "content-type", "if-match", "host"]

  init(
    url: WebAddress, bearer: String?, headers: [(name: String, value: String)], timeout: Int, roots: String?,
    proxy: NetProxy, verify: Bool, plain: Bool
  ) {
    self.url = url
    // Some services say "leave the bearer empty".
    self.bearer = bearer.flatMap { $0.isEmpty ? nil : $0 }
    self.headers = headers
    self.timeout = timeout
    self.roots = roots
    self.proxy = proxy
    self.verify = verify
    self.plain = plain
  }

  var trust: NetTrust {
    if let roots { return .file(roots) }
    return verify ? .system : .anyCertificate
  }

  // MARK: Checks

  /// What is wrong, and the cure; nil: nothing.
  var problem: NodeProblem? {
    guard url.scheme == .https || url.scheme == .http else {
      return NodeProblem(
        "the address of \"\(url.authority)\" must begin with https: or http:", parameter: "url")
    }
    guard isPrivate(url) else {
      return NodeProblem(
        """
        "\(url.authority)" would get the description in plain text, and who changes it on the way can listen
        """, parameter: "url", cure: "use https:, or set \"plain\" to true")
    }
    if roots == nil, !verify, !url.isLoopback {
      return NodeProblem(
        "verification may be disabled only for this machine", parameter: "verify",
        cure: "remove it; \"roots\" sets a certificate authority of your own")
    }
    guard timeout > 0 else { return NodeProblem("a timeout must be at least 1 ms", parameter: "signal") }
    return credentialProblem
  }

  private var credentialProblem: NodeProblem? {
    if let bearer, !bearer.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
      return NodeProblem(
        "the bearer contains a space, a line break or another character that a header cannot carry",
        parameter: "bearer", cure: "remove it; key files often end with a line break")
    }
    for (name, _) in headers {
      let lower = name.lowercased()
      guard !Self.own.contains(lower) else {
        return NodeProblem(
          "the header \"\(name)\" is set by the node", parameter: "headers", cure: "leave it out")
      }
      guard lower != "authorization" || bearer == nil else {
        return NodeProblem(
          "\"bearer\" and \"headers\" both set Authorization", parameter: "headers",
          cure: "leave one of them out")
      }
    }
    var request = HTTPClient.Request("POST", url)
    request.headers = headers
    // Whether plaintext is allowed was said above.
    request.allowsPlainCredentials = true
    return request.problem.map { NodeProblem($0.text, parameter: "headers") }
  }

  /// Reads the file of `roots`. What is wrong with it is no failure of the network, and no further attempt makes it right.
  func checkRoots() throws(DialogError) {
    do throws(NetError) { try trust.check(for: url) } catch {
      throw RTCError.failed.error(error.text, reaction: .refuse)
    }
  }

  /// True where nobody on the way can read or change what is sent, or the user has allowed it.
  private func isPrivate(_ address: WebAddress) -> Bool { address.isSecure || address.isLoopback || plain }

  /// Whether the server may send this side from one address to another. No way leads from https: to http:, except on this machine.
  func mayGo(from: WebAddress, to target: WebAddress) -> Bool {
    guard target.scheme == .https || target.scheme == .http else { return false }
    guard !from.isSecure || target.isSecure || from.isLoopback && target.isLoopback else { return false }
    return isPrivate(target)
  }

  // MARK: Requests

  /// The headers that prove who asks, for the host of the settings; none for another.
  func credentials(for address: WebAddress) -> [(name: String, value: String)] {
    guard address.host == url.host else { return [] }
    // A secure address may have been left for one that is not, on this machine only.
    guard address.isSecure || !url.isSecure else { return [] }
    return headers + (bearer.map { [(name: "Authorization", value: "Bearer \($0)")] } ?? [])
  }
}
