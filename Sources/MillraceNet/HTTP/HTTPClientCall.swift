internal import NIOCore
internal import NIOHTTP1

/// One request of an `HTTPClient`, over all its redirects and attempts. On the event loop.
///
/// ```
/// waiting ▸ connecting ▸ sending ▸ answered ▸ over
///    ▴           │          │          │
///    └───────────┴─ again ──┴──────────┘   redirect; a kept connection that was closed
/// ```
final class HTTPClientCall {
  private enum State {
    /// For a connection of the pool.
    case waiting
    case connecting(HTTPClientAttempt)
    case sending(HTTPClientConnection)
    /// The head of the response has arrived.
    case answered(HTTPClientConnection)
    case over
  }

  private(set) var request: HTTPClient.Request
  private let pool: HTTPClientPool
  private let loop: any EventLoop
  private let receive: @Sendable (HTTPClient.Event) -> Void
  private var state = State.waiting
  private var key: HTTPClientPool.Key?
  private var redirects: HTTPRedirect
  /// A kept connection was closed before it answered, and the request was sent again.
  private var hasRetried = false
  private var isPaused = false
  private var whole: LoopTimer?
  private var step: LoopTimer?

  init(
    _ request: HTTPClient.Request, _ pool: HTTPClientPool, on loop: any EventLoop,
    _ receive: @escaping @Sendable (HTTPClient.Event) -> Void
  ) {
    self.request = request
    self.pool = pool
    self.loop = loop
    self.receive = receive
    redirects = HTTPRedirect(from: request.address)
  }

  // MARK: Of the client

  func begin() {
    let timeouts = request.timeouts
    whole = schedule(timeouts.whole) { call in
      NetError(.timeout, "\(call.request.address.authority) did not answer within \(timeouts.whole) ms")
    }
    attempt(isFresh: false)
  }

  func cancel() { fail(NetError(.cancelled, "the request was cancelled by this side")) }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    switch state {
    case .sending(let connection), .answered(let connection): connection.setPaused(isPaused)
    case .waiting, .connecting, .over: break
    }
  }

  // MARK: Connecting

  private func attempt(isFresh: Bool) {
    state = .waiting
    do throws(NetError) {
      if let problem = request.problem { throw problem }
      let key = try HTTPClientPool.Key(request)
      self.key = key
      pool.acquire(self, key, isFresh: isFresh)
    } catch {
      fail(error)
    }
  }

  var isConnecting: Bool { if case .connecting = state { true } else { false } }

  /// A connection is about to be opened.
  func beginConnecting() -> HTTPClientAttempt {
    let limit = request.timeouts.connect
    let attempt = HTTPClientAttempt(timeout: limit > 0 ? limit : Int(Int32.max))
    state = .connecting(attempt)
    let bound = NIOLoopBound(attempt, eventLoop: loop)
    step = schedule(limit) { call in
      let peer = call.key?.proxy.map { "the proxy \($0)" } ?? call.request.address.authority
      let stage =
        bound.value.isConnected ? "completed neither the tunnel nor TLS" : "did not accept a connection"
      return NetError(.timeout, "\(peer) \(stage) within \(limit) ms; check the address and the network")
    }
    return attempt
  }

  func failedToConnect(_ problem: NetError) {
    if isConnecting { fail(problem) }
  }

  /// A connection is there.
  func take(_ connection: HTTPClientConnection) {
    state = .sending(connection)
    connection.setPaused(isPaused)
    connection.run(self, head, request.body)
  }

  private var head: HTTPRequestHead {
    let address = request.address
    var head = HTTPRequestHead(
      version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: address.target)
    if HTTPText.header("Host", in: request.headers) == nil {
      head.headers.add(name: "Host", value: address.hostHeader)
    }
    if let accepts = request.accepts, HTTPText.header("Accept", in: request.headers) == nil {
      head.headers.add(name: "Accept", value: accepts)
    }
    for (name, value) in request.headers { head.headers.add(name: name, value: value) }
    switch request.body {
    case .bytes(let bytes):
      // RFC 9110 section 8.6: a method that usually has content says so when there is none.
      if !bytes.isEmpty || ["POST", "PUT", "PATCH"].contains(request.method) {
        head.headers.add(name: "Content-Length", value: "\(bytes.count)")
      }
    case .stream(let length?, _): head.headers.add(name: "Content-Length", value: "\(length)")
    case .stream(nil, _): head.headers.add(name: "Transfer-Encoding", value: "chunked")
    }
    return head
  }

  // MARK: Of the connection

  /// The head was written, and so the TLS handshake is complete.
  func connected() {
    guard case .sending = state else { return }
    step?.cancel()
    step = nil
  }

  /// The whole request was written.
  func requestSent() {
    guard case .sending = state else { return }
    step?.cancel()
    let limit = request.timeouts.answer
    step = schedule(limit) { call in
      NetError(.timeout, "\(call.request.address.authority) did not begin to answer within \(limit) ms")
    }
  }

  /// The head of the response has arrived.
  func began(_ head: HTTPResponseHead) {
    guard case .sending(let connection) = state else { return }
    step?.cancel()
    state = .answered(connection)
    let response = HTTPClient.Response(
      status: Int(head.status.code), headers: head.headers.map { ($0.name, $0.value) },
      address: request.address)
    do throws(NetError) {
      if request.redirects > 0, HTTPRedirect.isRedirect(response) {
        request = try redirects.next(request, response)
        state = .waiting
        connection.leave()
        return attempt(isFresh: false)
      }
      try checkType(of: response)
    } catch {
      return fail(error)
    }
    receive(.head(response))
  }

  /// Whether a successful response is of the type that the caller understands.
  private func checkType(of response: HTTPClient.Response) throws(NetError) {
    guard let accepts = request.accepts, (200...299).contains(response.status), response.status != 204 else {
      return
    }
    let type = (response["Content-Type"] ?? "").prefix { $0 != ";" && $0 != " " }.lowercased()
    guard type != accepts.lowercased() else { return }
    let shown =
      type.isEmpty
        || !type.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
          HTTPText.isToken(String($0))
        }
      ? "something without a type" : String(type.prefix(100))
    throw NetError(
      .protocolError, status: response.status,
      "\(response.address.authority) answered with \(shown) instead of \(accepts); check the address")
  }

  func take(_ buffer: ByteBuffer) {
    guard case .answered = state else { return }
    receive(.bytes(Array(buffer.readableBytesView)))
  }

  /// The response is complete.
  func ended() {
    guard case .answered = state else { return }
    finish(.end)
  }

  /// The connection was lost.
  func lost(_ problem: NetError, by connection: HTTPClientConnection) {
    guard case .sending = state, connection.isKept, problem.kind == .lost, !hasRetried, request.isIdempotent,
      request.isRepeatable
    else { return fail(problem) }
    // The server closed it between two requests, as it may at any time, RFC 9112 section 9.3.1.
    hasRetried = true
    step?.cancel()
    attempt(isFresh: true)
  }

  // MARK: End

  private func fail(_ problem: NetError) {
    let state = self.state
    finish(.failed(problem))
    switch state {
    case .waiting: if let key { pool.leave(self, key) }
    case .connecting(let attempt): attempt.cancel()
    case .sending(let connection), .answered(let connection): connection.close(problem)
    case .over: break
    }
  }

  /// Gives the caller the last event, once.
  private func finish(_ event: HTTPClient.Event) {
    if case .over = state { return }
    state = .over
    whole?.cancel()
    step?.cancel()
    receive(event)
  }

  private func schedule(
    _ milliseconds: Int, _ problem: @escaping (HTTPClientCall) -> NetError
  ) -> LoopTimer? {
    guard milliseconds > 0 else { return nil }
    let bound = NIOLoopBound((self, problem), eventLoop: loop)
    return LoopTimer(on: loop, in: .milliseconds(Int64(milliseconds))) {
      let (call, problem) = bound.value
      call.fail(problem(call))
    }
  }
}
