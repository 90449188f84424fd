internal import NIOCore
internal import NIOHTTP1

/// A single HTTP/1.1 request, for example for an access token, on a connection of its own that is closed afterwards.
///
/// Not supported: redirects (a service that moves needs a new address), cookies, compression, streaming. An invalid TLS certificate is
/// an error.
public struct HTTPCall: Sendable {
  /// The method, such as `POST`.
  public var method: String
  /// The URL.
  public var address: WebAddress
  /// Sent in addition to the headers HTTP requires.
  public var headers: [(name: String, value: String)] = []
  /// The request body; empty for none.
  public var body: [UInt8] = []
  /// The proxy.
  public var proxy = NetProxy.environment
  /// Which certificates are trusted.
  public var trust = NetTrust.system
  /// Milliseconds from the DNS lookup to the last byte of the response.
  public var timeout = 15_000
  /// Allows a credential in headers or query although the URL uses no TLS and is not loopback. Anyone on the way can then read and use it.
  public var allowsPlainCredentials = false
  /// The largest response body in bytes.
  public var limit = 1 << 20

  /// Creates a request without headers and body.
  public init(_ method: String = "GET", _ address: WebAddress) {
    self.method = method
    self.address = address
  }

  /// A response.
  public struct Response: Sendable {
    /// The status. Any status is a response, 404 too.
    public var status: Int
    /// The headers, in order.
    public var headers: [(name: String, value: String)]
    /// The whole body, at most `limit` bytes.
    public var body: [UInt8]

    /// The value of a header; the name is case-insensitive.
    public subscript(header: String) -> String? {
      headers.first { $0.name.lowercased() == header.lowercased() }?.value
    }
  }

  /// Sends the request and returns the response. Any thread.
  public func run() async throws(NetError) -> Response {
    try NetLoop.begin()
    do {
      return try await start().get()
    } catch {
      throw NetErrorMessages.error(error, address.authority, address.host)
    }
  }

  /// Sends the request and calls `done` on the network thread, or at once on the caller's when that thread cannot be started.
  public func run(_ done: @escaping @Sendable (Result<Response, NetError>) -> Void) {
    do throws(NetError) { try NetLoop.begin() } catch { return done(.failure(error)) }
    start().whenComplete { result in
      done(result.mapError { NetErrorMessages.error($0, address.authority, address.host) })
    }
  }

  private func start() -> EventLoopFuture<Response> {
    let loop = NetLoop.shared.loop
    let promise = loop.makePromise(of: Response.self)
    loop.execute { begin(on: loop, promise) }
    return promise.futureResult
  }

  private func begin(on loop: any EventLoop, _ promise: EventLoopPromise<Response>) {
    if let problem = headers.lazy.compactMap({ HTTPText.problem($0.name, $0.value) }).first {
      promise.fail(problem)
      return
    }
    if !allowsPlainCredentials, let problem = HTTPText.plainProblem(address, headers) {
      promise.fail(problem)
      return
    }
    guard HTTPText.isToken(method) else {
      promise.fail(NetError(.address, "an HTTP method must be a word such as GET"))
      return
    }
    let deadline = loop.scheduleTask(in: .milliseconds(Int64(timeout))) {
      promise.fail(NetError(.timeout, "\(address.authority) did not answer within \(timeout) ms"))
    }
    promise.futureResult.whenComplete { _ in deadline.cancel() }
    let opening = ConnectionAttempt(
      address: address, proxy: proxy, trust: trust, timeout: .milliseconds(Int64(timeout)))
    // Closed on timeout too: the response then has no reader.
    let closing: @Sendable (any Channel) -> Void = { channel in
      promise.futureResult.whenComplete { _ in channel.close(promise: nil) }
    }
    opening.open(on: loop, closing).flatMap { channel in
      HTTPExchange.run(
        on: channel, head, body: body, limit: limit, peer: address.authority, host: address.host)
    }.map { response in
      Response(
        status: response.status, headers: response.headers.map { ($0.name, $0.value) }, body: response.body)
    }.cascade(to: promise)
  }

  private var head: HTTPRequestHead {
    var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method), uri: address.target)
    if !headers.contains(where: { $0.name.lowercased() == "host" }) {
      head.headers.add(name: "Host", value: address.hostHeader)
    }
    for (name, value) in headers { head.headers.add(name: name, value: value) }
    if !body.isEmpty || method == "POST" || method == "PUT" {
      head.headers.replaceOrAdd(name: "Content-Length", value: "\(body.count)")
    }
    head.headers.replaceOrAdd(name: "Connection", value: "close")
    return head
  }
}

extension HTTPCall: CustomStringConvertible {
  /// Method and host. Headers, body and query may be secret.
  public var description: String { "\(method) \(address.scheme)://\(address.authority)" }
}
