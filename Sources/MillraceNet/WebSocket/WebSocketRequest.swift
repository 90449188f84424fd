/// Where and how to open a WebSocket.
public struct WebSocketRequest: Sendable {
  /// The URL.
  public var address: WebAddress
  /// Headers of the handshake, such as `Authorization`. `Host` replaces the default one.
  public var headers: [(name: String, value: String)] = []
  /// Subprotocols to offer, in order of preference.
  public var protocols: [String] = []
  /// Size limits and timeouts.
  public var limits = WebSocketLimits()
  /// The proxy.
  public var proxy = NetProxy.environment
  /// Which certificates are trusted.
  public var trust = NetTrust.system
  /// The loop that owns the socket: that of its session (`NetLoop.assign`). Nil: `NetLoop.shared`.
  public var loop: NetLoop?
  /// The host is a server of this program at an address of this machine, where `NetTrust.anyCertificate` may be used.
  package var isOwnServer = false

  /// Allows a credential in headers or query although the URL uses no TLS and is not loopback. Anyone on the way can then read and use it.
  public var allowsPlainCredentials = false

  /// Creates a request without extra headers.
  public init(_ address: WebAddress) { self.address = address }

  /// The header or query name whose credential would be sent in plain text beyond this machine, or nil.
  public var plainCredential: String? { HTTPText.plainCredential(address, headers) }

  /// What is wrong with the request, or nil. A socket opened with it ends with this error.
  public var problem: NetError? {
    guard !address.scheme.isStream else {
      return NetError(.address, "a WebSocket address must begin with ws: or wss:")
    }
    for (name, value) in headers {
      if let problem = HTTPText.problem(name, value) { return problem }
      let word = name.lowercased()
      if ["connection", "upgrade"].contains(word) || word.hasPrefix("sec-websocket-") {
        return NetError(.address, "header \"\(name)\" is set by the handshake; leave it out")
      }
    }
    guard protocols.allSatisfy(HTTPText.isToken) else {
      return NetError(.address, "a subprotocol name contains a space, a comma or another invalid character")
    }
    return allowsPlainCredentials ? nil : HTTPText.plainProblem(address, headers)
  }
}

extension WebSocketRequest: CustomStringConvertible {
  /// Scheme and host. Headers and query may be secret.
  public var description: String { "\(address.scheme)://\(address.authority)" }
}
