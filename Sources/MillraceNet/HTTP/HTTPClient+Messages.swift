extension HTTPClient {
  /// A request.
  public struct Request: Sendable {
    /// The method, such as `POST`.
    public var method: String
    /// The URL, `http:` or `https:`.
    public var address: WebAddress
    /// Sent in addition to the headers HTTP requires. `Host` replaces the default one; the headers that frame the body and `Connection` are
    /// the client's.
    public var headers: [(name: String, value: String)] = []
    /// The content.
    public var body = Body.bytes([])
    /// The largest response body in bytes, when it is wanted as a whole.
    public var limit = 1 << 20
    /// The most redirects that are followed; 0: a redirect is a response like any other.
    public var redirects = 5
    /// Refuses redirects to another origin (scheme, host and port): for a body, or a header of any name, that holds a credential. The client
    /// leaves out only headers with the name of one.
    public var staysAtOrigin = false
    /// Refuses redirects to `http:` beyond this machine: for a response that is a credential.
    public var refusesPlaintextRedirects = false
    /// Times after which the request fails.
    public var timeouts = Timeouts()
    /// The media type that a successful response must have, such as `application/json`; nil: any. It is also sent as `Accept`, unless the
    /// headers have one. A login page where data was expected is then an error that says so.
    public var accepts: String?
    /// The proxy.
    public var proxy = NetProxy.environment
    /// Which certificates are trusted.
    public var trust = NetTrust.system
    /// Allows a credential in headers or query although the URL uses no TLS and is not loopback. Anyone on the way can then read and use it.
    public var allowsPlainCredentials = false

    /// Creates a request without headers and body.
    public init(_ method: String = "GET", _ address: WebAddress) {
      self.method = method
      self.address = address
    }
  }

  /// The content of a request.
  public enum Body: Sendable {
    /// These bytes; none for a request without content.
    case bytes([UInt8])
    /// Bytes as they come: exactly `length` of them, or any number in chunks for nil. The closure is called on the client's thread with the
    /// stream, and returns the receiver of its events. Such a request cannot be sent a second time, to the target of a redirect for
    /// example.
    case stream(length: Int? = nil, @Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void)
  }

  /// Times after which a request fails, in milliseconds; 0: never.
  public struct Timeouts: Sendable, Hashable {
    /// From the DNS lookup to the end of the TLS handshake, for each connection; 10 s unless set.
    public var connect: Int
    /// From the last byte of the request to the head of the response: for a long poll longer than the server waits; 30 s unless
    /// set.
    public var answer: Int
    /// For everything, redirects included; 60 s unless set.
    public var whole: Int

    /// Times; those that are left out are as documented.
    public init(connect: Int = 10_000, answer: Int = 30_000, whole: Int = 60_000) {
      self.connect = connect
      self.answer = answer
      self.whole = whole
    }
  }

  /// A response.
  public struct Response: Sendable {
    /// The status. Any status is a response, 404 too.
    public var status: Int
    /// The headers, in order.
    public var headers: [(name: String, value: String)]
    /// The whole body, at most `limit` bytes; empty where the body is streamed.
    public var body: [UInt8] = []
    /// The URL that answered: the request's, or the target of the last redirect.
    public var address: WebAddress

    /// The first value of a header; the name is case-insensitive.
    public subscript(header: String) -> String? { HTTPText.header(header, in: headers) }

    /// Every value of a header that may come several times, such as `Link`.
    public func values(of header: String) -> [String] {
      headers.filter { $0.name.lowercased() == header.lowercased() }.map(\.value)
    }

    /// The `Location` header, relative to the URL that answered; nil without a valid one.
    public var location: WebAddress? { self["Location"].flatMap { try? address.resolving($0) } }
  }

  /// A part of a streamed response. Always on the client's thread, in order; `end` or `failed` is the last, and comes exactly once.
  public enum Event: Sendable {
    /// Status and headers.
    case head(Response)
    /// The next bytes of the body.
    case bytes([UInt8])
    /// The body is complete.
    case end
    /// The request failed, before or after the head.
    case failed(NetError)
  }

  /// Limits of kept connections.
  public struct Limits: Sendable, Hashable {
    /// Connections to one host at once, that is, to one scheme, host, port, proxy and trust. Further requests wait for one of them.
    public var connectionsPerHost = 8
    /// Milliseconds a connection without a request stays open. Many servers close after 60 s or less.
    public var idle = 30_000

    /// The limits as documented.
    public init() {}
  }
}

extension HTTPClient.Request {
  /// Headers that this client sets: a second one could end the body elsewhere than the server thinks.
  private static let own: Set<String> = [
    "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade",
  ]

  /// What is wrong with the request, or nil. A request that is sent nevertheless ends with this error.
  public var problem: NetError? {
    guard address.scheme == .http || address.scheme == .https else {
      return NetError(.address, "an HTTP request needs an address with http: or https:")
    }
    guard HTTPText.isToken(method) else {
      return NetError(.address, "an HTTP method must be a word such as GET")
    }
    for (name, value) in headers + (accepts.map { [(name: "Accept", value: $0)] } ?? []) {
      if let problem = HTTPText.problem(name, value) { return problem }
      if Self.own.contains(name.lowercased()) {
        return NetError(.address, "header \"\(name)\" is set by the client; leave it out")
      }
    }
    return allowsPlainCredentials ? nil : HTTPText.plainProblem(address, headers)
  }

  /// True for methods that a server may be asked twice, RFC 9110 section 9.2.2.
  var isIdempotent: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method) }

  /// True when the request can be sent a second time.
  var isRepeatable: Bool {
    if case .bytes = body { true } else { false }
  }
}

extension HTTPClient.Request: CustomStringConvertible {
  /// Method and host. Headers, body and query may be secret.
  public var description: String { "\(method) \(address.scheme)://\(address.authority)" }
}
