/// What to open, and how.
public struct WebSocketRequest: Sendable {
  /// Whom to open it to.
  public var address: WebAddress
  /// Sent with the handshake, such as `Authorization`. One called `Host` takes the place of the usual one.
  public var headers: [(name: String, value: String)] = []
  /// Sub-protocols to offer, the best first.
  public var protocols: [String] = []
  /// Sizes and times.
  public var limits = WebSocketLimits()
  /// The way there.
  public var proxy = NetProxy.environment
  /// Whose certificates are believed.
  public var trust = NetTrust.system

  /// True: headers and query may hold a credential although the address is neither secure nor this machine. Whoever is on the way can
  /// read it then, and use it.
  public var allowsPlainCredentials = false

  /// A request without headers of its own.
  public init(_ address: WebAddress) { self.address = address }

  /// The header, or the name in the address's query, that is a credential and would go out in plain text beyond this machine; nil: none.
  public var plainCredential: String? { HTTPText.plainCredential(address, headers) }

  /// What would make the handshake another one than was meant; nil: nothing. A socket that is opened all the same ends with it.
  public var problem: NetProblem? {
    for (name, value) in headers {
      if let problem = HTTPText.problem(name, value) { return problem }
      let word = name.lowercased()
      if ["connection", "upgrade"].contains(word) || word.hasPrefix("sec-websocket-") {
        return NetProblem(.address, "a header \"\(name)\" is the handshake's own; leave it out")
      }
    }
    guard protocols.allSatisfy(HTTPText.isToken) else {
      return NetProblem(.address, "the name of a sub-protocol holds a space, a comma or something like it")
    }
    return allowsPlainCredentials ? nil : HTTPText.plainProblem(address, headers)
  }
}

extension WebSocketRequest: CustomStringConvertible {
  /// Where it goes. Headers and the address's query may be secret.
  public var description: String { "\(address.scheme)://\(address.place)" }
}
