internal import NIOCore
internal import NIOHTTP1

/// One request on a connection of an `HTTPServer`, and its answer. On the event loop.
final class HTTPServerExchange {
  /// What happens to the request's body.
  enum Input {
    /// It is discarded, then this is answered.
    case discarded(HTTPServer.Response)
    /// It is collected, then the server's code is called.
    case collected(@Sendable (HTTPServer.Request, HTTPReply) -> Void)
    /// It is passed on as it comes.
    case streamed(@Sendable (HTTPServer.BodyEvent) -> Void)
    /// There is none; then the connection becomes a WebSocket.
    case upgrade(HTTPUpgrade)
    /// The request is complete, or the rest of it is of no interest.
    case ended
  }

  let head: HTTPRequestHead
  private(set) var request: HTTPServer.Request
  var input = Input.ended
  /// The request has been read to its end.
  private(set) var isRead = false
  private(set) var isPaused = false
  /// Called when it is over.
  var observers: [@Sendable (NetError?) -> Void] = []
  /// An answer was given.
  private(set) var isAnswered = false
  /// Writes the answer. It refers to this exchange, so that it is released at the end.
  private var writer: HTTPResponseWriter?

  /// What the receiver of a streamed body receives when the exchange is over before the body.
  private var rest: NetError?
  private var limit = 0
  private var received = 0
  private var collected: [UInt8] = []
  private weak var reply: HTTPReply?
  private let loop: any EventLoop
  private let gate: LoopGate
  /// Nil when it is over.
  private var connection: HTTPServerConnection?

  init(
    _ head: HTTPRequestHead, peer: String, on connection: HTTPServerConnection, _ loop: any EventLoop,
    _ gate: LoopGate
  ) {
    self.head = head
    self.loop = loop
    self.gate = gate
    self.connection = connection
    request = HTTPServer.Request(
      method: head.method.rawValue, target: head.uri, headers: head.headers.map { ($0.name, $0.value) },
      peer: peer, asksForWebSocket: HTTPUpgrade.isAsked(head))
  }

  // MARK: Request

  /// What was decided about the body.
  func expect(_ input: Input, limit: Int) {
    self.input = input
    self.limit = limit
    // The code that returned the receiver has answered, and the answer is already sent.
    if let rest { fail(rest) }
  }

  /// The rest of the body is passed on as it comes.
  var isStreamed: Bool { if case .streamed = input { true } else { false } }

  /// True when the request says that its body is too large.
  var announcesTooMuch: Bool {
    head.headers.first(name: "Content-Length").flatMap { Int($0) }.map { $0 > limit } ?? false
  }

  /// RFC 9110 section 10.1.1: the client waits for status 100 before it sends the body.
  var awaitsContinue: Bool {
    head.version == .http1_1
      && head.headers[canonicalForm: "Expect"].contains { $0.lowercased() == "100-continue" }
  }

  var tooLarge: NetError {
    NetError(.tooLarge, status: 413, "a request body may have at most \(limit) bytes")
  }

  /// A part of the body. Returns false when it is too large.
  func take(_ buffer: ByteBuffer) -> Bool {
    received += buffer.readableBytes
    guard received <= limit else { return false }
    switch input {
    case .collected: collected += buffer.readableBytesView
    case .streamed(let receive): receive(.bytes(Array(buffer.readableBytesView)))
    case .discarded, .upgrade, .ended: break
    }
    return true
  }

  /// The request is complete.
  func takeEnd() {
    isRead = true
    let input = self.input
    self.input = .ended
    switch input {
    case .discarded(let response): answer(response)
    case .collected(let receive):
      request.body = collected
      collected = []
      receive(request, makeReply())
    case .streamed(let receive): receive(.end)
    case .upgrade(let upgrade): connection?.upgrade(upgrade)
    case .ended: break
    }
  }

  /// The rest of the request does not come or is not read.
  func fail(_ problem: NetError) {
    let input = self.input
    self.input = .ended
    if case .streamed(let receive) = input { receive(.failed(problem)) }
  }

  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    connection?.pauseChanged(in: self)
  }

  // MARK: Answer

  /// The one reply to this request.
  func makeReply() -> HTTPReply {
    let reply = HTTPReply(self, on: loop, gate)
    self.reply = reply
    return reply
  }

  func answer(_ response: HTTPServer.Response) { connection?.answer(response, in: self) }

  func drop() { connection?.close() }

  func begin(_ writer: HTTPResponseWriter) {
    isAnswered = true
    self.writer = writer
  }

  /// Everything was sent, or the connection is lost.
  func end(_ problem: NetError?) {
    guard connection != nil else { return }
    connection = nil
    rest = problem ?? (isRead ? nil : NetError(.cancelled, "the request was answered before its end"))
    if let rest { fail(rest) }
    writer?.close(problem)
    writer = nil
    reply?.end(problem)
    let observers = self.observers
    self.observers = []
    for observer in observers { observer(problem) }
  }
}
