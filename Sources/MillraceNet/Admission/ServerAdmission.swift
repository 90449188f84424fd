/// Which clients a server admits, and how many: the same rules for HTTP requests and WebSockets.
///
/// A browser lets every page open a WebSocket to every host, the user's own machine included; it only sends where the page is from
/// (`Origin`, RFC 6455 section 10.2). So pages from other origins are refused unless they are listed. A page whose name was rebound to
/// this machine after it was loaded (DNS rebinding) looks same-origin; the name in its `Host` header gives it away.
///
/// A connection is half-open from when TCP accepts it until its first request is admitted. A pure value: the verdict on a request depends
/// on nothing but the request.
public struct ServerAdmission: Sendable, Hashable {
  /// Origins that may connect besides the server's own host and, for clients on this machine, loopback pages; for example
  /// `https://app.example.org`. `*` allows every origin. A client that sends no origin is not a browser, and is admitted.
  public var origins: [String] = []
  /// Which pages need no entry there.
  package var pages = Pages.ofHost
  /// Host names by which clients may address the server besides numeric addresses, `localhost`, the name it listens on and the names in
  /// its certificate. `*` allows every name.
  public var hosts: [String] = []
  /// The bearer token clients need: `Authorization: Bearer …`, or for browsers, which cannot set it, `token=…` in the query. Nil: none.
  public var token: String?
  /// Allows a server that other machines can reach to do without TLS, for example behind a proxy that terminates it.
  public var allowsPlaintext = false
  /// The most open connections.
  public var connections = 1_024
  /// The most half-open connections.
  public var halfOpen = 256
  /// The most half-open connections from one address; for IPv6, from one /64 network, which is what one customer gets. The same
  /// limit holds for its requests whose bodies are incomplete; bodies read as they come do not count.
  public var halfOpenPerAddress = 32
  /// The largest request line and headers, in bytes together.
  public var maxRequestBytes = 16_384

  /// Pages that may connect without being listed.
  package enum Pages: Sendable, Hashable {
    /// Those of the server's own host by any scheme and port, and from this machine loopback pages.
    case ofHost
    /// Those that come from the server itself: from the host and port that the request names, and over TLS where the server has it. For
    /// servers at which a page of another program on the same host could do harm.
    case ofServer(isSecure: Bool)
  }

  /// Creates the default rules: loopback pages, no token, TLS required beyond this machine.
  public init() {}

  /// Rules for many clients on this machine, for example in a load test.
  public static let loadTest: ServerAdmission = {
    var admission = ServerAdmission()
    admission.connections = 8_192
    admission.halfOpen = 1_024
    admission.halfOpenPerAddress = 1_024
    return admission
  }()

  /// What is wrong with the rules, for example an invalid origin, or nil. A server with invalid rules does not start.
  public var problem: NetError? {
    for origin in origins where origin != "*" && origin.lowercased() != "null" {
      guard let address = try? WebAddress(origin) else {
        // Browser extensions and applications have schemes of their own.
        guard origin.contains("://"), !origin.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else {
          return NetError(.address, "an origin must look like https://app.example.org, or be * for any")
        }
        continue
      }
      guard address.target == "/" && !origin.hasSuffix("/") else {
        return NetError(.address, "an origin must not have a path or query: https://app.example.org")
      }
    }
    for host in hosts where host != "*" {
      guard WebAddress.isHost(host) else {
        return NetError(.address, "a host must be a name without scheme and port, or * for any")
      }
    }
    if let token {
      guard !token.isEmpty else { return NetError(.address, "an empty token would admit every client") }
      guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        return NetError(.address, "a token may contain only printable ASCII without spaces")
      }
    }
    guard connections > 0 && halfOpen > 0 && halfOpenPerAddress > 0 && maxRequestBytes > 0 else {
      return NetError(.address, "connection limits must be at least 1")
    }
    return nil
  }

  /// What is wrong with listening on this address under these rules, or nil.
  public func problem(listeningAt host: String, hasTLS: Bool) -> NetError? {
    if let problem { return problem }
    guard !hasTLS && !allowsPlaintext && !WebAddress.isLoopback(host.lowercased()) else { return nil }
    return NetError(
      .address,
      "other machines could reach \"\(host)\" without TLS; set a certificate and its key, or allow plaintext")
  }
}

extension ServerAdmission: CustomStringConvertible {
  /// The limits. The token must not be printed.
  public var description: String {
    "\(connections) connections, \(halfOpen) half-open, \(halfOpenPerAddress) of them per address"
  }
}

extension ServerAdmission {
  /// Why a connection was refused.
  public struct Refusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of refusal. Tests and callers compare this, not the text.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// The host name is not one of this server.
      case host
      /// The origin is not allowed.
      case origin
      /// The token is missing or wrong.
      case token
      /// The most connections are open.
      case full
      /// The most connections are half-open, in total or from this address, or the most requests from this address are incomplete.
      case halfOpen
      /// The request is not HTTP.
      case invalid
      /// The request is too large.
      case tooLarge
      /// The request did not arrive in time.
      case timeout
      /// The server's own code refused it.
      case decision
      /// The server's certificate file changed and can no longer be read.
      case certificate
      /// This process is out of file descriptors. Connections wait in the system's queue and are accepted later.
      case descriptors
    }

    /// The kind of refusal.
    public var kind: Kind
    /// The HTTP status that was sent, or nil when none was.
    public var status: Int?
    /// The message that was sent.
    public var text: String
    /// For the server's owner: the origin or host in the request.
    public var detail = ""

    public var description: String { detail.isEmpty ? text : "\(text): \(detail)" }
  }

  /// Refusals since the last report. The first is reported at once, later ones once a second.
  public struct Refusals: Sendable, Hashable {
    /// Refusals since the last report.
    public var count: Int
    /// Refusals in total.
    public var total: Int
    /// The latest refusal.
    public var latest: Refusal
    /// The peer the latest was sent to.
    public var peer: String
  }
}
