internal import NIOCore
internal import NIOHTTP1

/// One call over HTTP/1.1: a token to get, a session to open. A connection of its own, closed behind it.
///
/// Not done: redirects (a service that moves has to be told so), cookies, compression, streams. TLS as everywhere here: a
/// certificate that does not verify is an error.
public struct HTTPCall: Sendable {
  /// The method, such as `POST`.
  public var method: String
  /// Whom to call.
  public var address: WebAddress
  /// Sent with it, beside those that HTTP asks for.
  public var headers: [(name: String, value: String)] = []
  /// Sent behind them; empty: none.
  public var body: [UInt8] = []
  /// The way there.
  public var proxy = NetProxy.environment
  /// Whose certificates are believed.
  public var trust = NetTrust.system
  /// Milliseconds from the look-up to the last byte of the answer.
  public var timeout = 15_000
  /// True: headers and query may hold a credential although the address is neither secure nor this machine. Whoever is on the way can
  /// read it then, and use it.
  public var allowsPlainCredentials = false
  /// Bytes of an answer's body at most.
  public var limit = 1 << 20

  /// A call without headers and body.
  public init(_ method: String = "GET", _ address: WebAddress) {
    self.method = method
    self.address = address
  }

  /// What came back.
  public struct Answer: Sendable {
    /// The status, whatever it is: 404 is an answer.
    public var status: Int
    /// As they came.
    public var headers: [(name: String, value: String)]
    /// All of it, `limit` bytes at most.
    public var body: [UInt8]

    /// A header's value, its name in any case.
    public subscript(header: String) -> String? {
      headers.first { $0.name.lowercased() == header.lowercased() }?.value
    }
  }

  /// Makes the call. Any thread.
  public func run() async throws(NetProblem) -> Answer {
    try NetLoop.begin()
    do {
      return try await start().get()
    } catch {
      throw NetWords.problem(error, address.place, address.host)
    }
  }

  /// Makes the call, and tells the end on the thread of the sockets; at once on the caller's where that cannot be made.
  public func run(_ done: @escaping @Sendable (Result<Answer, NetProblem>) -> Void) {
    do throws(NetProblem) { try NetLoop.begin() } catch { return done(.failure(error)) }
    start().whenComplete { result in
      done(result.mapError { NetWords.problem($0, address.place, address.host) })
    }
  }

  private func start() -> EventLoopFuture<Answer> {
    let loop = NetLoop.shared.loop
    let promise = loop.makePromise(of: Answer.self)
    loop.execute { begin(on: loop, promise) }
    return promise.futureResult
  }

  private func begin(on loop: any EventLoop, _ promise: EventLoopPromise<Answer>) {
    if let problem = headers.lazy.compactMap({ HTTPText.problem($0.name, $0.value) }).first {
      promise.fail(problem)
      return
    }
    if !allowsPlainCredentials, let problem = HTTPText.plainProblem(address, headers) {
      promise.fail(problem)
      return
    }
    guard HTTPText.isToken(method) else {
      promise.fail(NetProblem(.address, "a method is a word such as GET"))
      return
    }
    let deadline = loop.scheduleTask(in: .milliseconds(Int64(timeout))) {
      promise.fail(NetProblem(.timeout, "\(address.place) did not answer within \(timeout) ms"))
    }
    promise.futureResult.whenComplete { _ in deadline.cancel() }
    let opening = Opening(
      address: address, proxy: proxy, trust: trust, timeout: .milliseconds(Int64(timeout)))
    // Closed also when time is up: then the answer is nobody's.
    let closing: @Sendable (any Channel) -> Void = { channel in
      promise.futureResult.whenComplete { _ in channel.close(promise: nil) }
    }
    opening.open(on: loop, closing).flatMap { channel in
      HTTPExchange.run(
        on: channel, head, body: body, limit: limit, place: address.place, host: address.host)
    }.map { answer in
      Answer(status: answer.status, headers: answer.headers.map { ($0.name, $0.value) }, body: answer.body)
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
  /// The method and where it goes. Headers, body and the address's query may be secret.
  public var description: String { "\(method) \(address.scheme)://\(address.place)" }
}
