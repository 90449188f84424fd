/// Which visitors a server of WebSockets lets in, and how many.
///
/// A browser lets every page open a WebSocket to every place, the user's own machine among them; it only says where the page is from
/// (`Origin`, RFC 6455 section 10.2). So pages of other sites are refused unless they are named. A page whose name was made to lead to
/// this machine after it was loaded (DNS rebinding) looks like one of the server's own; it is known by the name it asks for (`Host`).
///
/// A visitor is half-open from when their TCP connection is accepted until the handshake is answered. A pure value: what it says of a
/// visitor depends on nothing but what they sent.
public struct WebSocketDoor: Sendable, Hashable {
  /// Pages that may connect besides those of the server's own host and, for a visitor on this machine, those of this machine: such as
  /// `https://app.example.org`. `*`: any. Who sends no origin is no browser, and is let in.
  public var origins: [String] = []
  /// Names by which visitors may ask for the server besides addresses in digits, `localhost`, the name it listens at and those of its
  /// certificate. `*`: any.
  public var hosts: [String] = []
  /// What a visitor has to know: sent as `Authorization: Bearer …`, or by a browser, which cannot, as `token=…` in the query. nil: nothing.
  public var token: String?
  /// True: a server that other machines can reach may do without TLS, such as one behind a proxy that speaks it.
  public var plain = false
  /// Visitors that may be in at the same time.
  public var visitors = 1_024
  /// Visitors that may be half-open at the same time.
  public var halfOpen = 256
  /// Of those, from one address; of IPv6, from one network of 64 bits, which is what one customer gets.
  public var halfOpenPerAddress = 32
  /// Bytes of a visitor's request at most: its first line, headers and body together.
  public var handshake = 16_384

  /// Pages of this machine, no token, TLS beyond it.
  public init() {}

  /// A door for many clients that all come from this machine, such as those of a load test.
  public static let crowd: WebSocketDoor = {
    var door = WebSocketDoor()
    door.visitors = 8_192
    door.halfOpen = 1_024
    door.halfOpenPerAddress = 1_024
    return door
  }()

  /// What is wrong with it, such as an origin that is none; nil: nothing. A server with such a door does not begin to listen.
  public var problem: NetProblem? {
    for origin in origins where origin != "*" && origin.lowercased() != "null" {
      guard let address = try? WebAddress(origin) else {
        // Pages of browser extensions and of applications have schemes of their own.
        guard origin.contains("://"), !origin.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else {
          return NetProblem(.address, "an origin is written https://app.example.org, or * for any")
        }
        continue
      }
      guard address.target == "/" && !origin.hasSuffix("/") else {
        return NetProblem(.address, "an origin has neither path nor query: https://app.example.org")
      }
    }
    for host in hosts where host != "*" {
      guard WebAddress.isHost(host) else {
        return NetProblem(.address, "a host is a name without scheme and port, or * for any")
      }
    }
    if let token {
      guard !token.isEmpty else { return NetProblem(.address, "an empty token lets anybody in") }
      guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        return NetProblem(.address, "a token holds only visible characters of ASCII, and no space")
      }
    }
    guard visitors > 0 && halfOpen > 0 && halfOpenPerAddress > 0 && handshake > 0 else {
      return NetProblem(.address, "limits of a door are at least 1")
    }
    return nil
  }

  /// What is wrong with listening at an address; nil: nothing.
  public func problem(listeningAt host: String, hasTLS: Bool) -> NetProblem? {
    if let problem { return problem }
    guard !hasTLS && !plain && !WebAddress.isLoopback(host.lowercased()) else { return nil }
    return NetProblem(
      .address,
      "other machines could reach \"\(host)\" without TLS; give a certificate and its key, or allow plain")
  }
}

extension WebSocketDoor: CustomStringConvertible {
  /// The limits. A token must not be shown.
  public var description: String {
    "door for \(visitors) visitors, \(halfOpen) half-open, \(halfOpenPerAddress) of them from one address"
  }
}

extension WebSocketDoor {
  /// Why somebody did not get in.
  public struct Refusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// What stood in the way.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
      /// They asked for a host that this server is not.
      case host
      /// A page of another site.
      case origin
      /// The token is missing or wrong.
      case token
      /// As many visitors are in as may be.
      case full
      /// As many are half-open as may be, of all or of their address.
      case halfOpen
      /// The request is too large.
      case tooLarge
      /// The handshake took too long.
      case tooSlow
      /// The server's owner did not want them.
      case decision
      /// The server's certificate was changed, and cannot be read any more.
      case certificate
      /// This process may open no more files. They wait in the system's queue, and are let in later.
      case files
    }

    /// What stood in the way.
    public var kind: Kind
    /// The status of HTTP they were sent; nil: nothing was sent.
    public var status: Int?
    /// In words, as they were sent.
    public var text: String
    /// For the server's owner: the origin or host they named.
    public var detail = ""

    public var description: String { detail.isEmpty ? text : "\(text): \(detail)" }
  }

  /// Refusals since the last time they were told: the first at once, further ones once a second.
  public struct Refusals: Sendable, Hashable {
    /// How many there were since the last time.
    public var count: Int
    /// How many there were in all.
    public var total: Int
    /// The latest of them.
    public var latest: Refusal
    /// Where the latest came from.
    public var place: String
  }
}
