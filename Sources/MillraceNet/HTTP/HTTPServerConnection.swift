internal import NIOCore
internal import NIOHTTP1

/// One client of an `HTTPServer`: reads requests, has them admitted and decided on, and writes the responses, one after the other. On the
/// event loop.
///
/// ```
/// waiting ──head──▸ serving ──last byte of the response written──▸ waiting
///    │                 ├── the last response ──▸ closing ──the client closes, or its time is up──▸ closed
///    └── too late ─────┘
///                      └── a WebSocket ──▸ upgraded
/// ```
///
/// Before the first byte it is in no pipeline (`HTTPFirstByteHandler`): a client that sends nothing costs a descriptor and little memory.
final class HTTPServerConnection: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private enum State {
    /// For a request, or the rest of its head.
    case waiting(since: NIODeadline)
    case serving(HTTPServerExchange)
    /// The last response was written. What arrives is discarded: closed at once, with bytes unread, the system would reset the connection,
    /// and the client might never see the response.
    case closing
    /// The channel belongs to a WebSocket, or is closed.
    case over
  }

  /// What the decoder read.
  private enum Input {
    case part(HTTPServerRequestPart)
    /// It is not HTTP, or a head is too large.
    case garbage(any Error)
  }

  /// Milliseconds for a client to close after the last response.
  private static let lingering = 2_000

  private let server: HTTPServerCore
  private let channel: any Channel
  let peer: AdmittedPeer
  private var codec: HTTPServerCodec?
  private var context: ChannelHandlerContext?
  private var state = State.waiting(since: .now())
  /// Of what the client has to send.
  private var deadline: LoopTimer?
  /// Watches what the client has to take.
  private lazy var sending = HTTPSendTimer(channel, .milliseconds(Int64(server.limits.patience))) {
    [weak self] in self?.giveUp()
  }
  /// Set when this side closes because the client takes nothing: why what is not sent yet ends.
  private var stall: NetError?
  /// Responses whose end was written and not yet sent; with pipelining there may be several.
  private var unsentEnds = 0
  /// What came together with the end of a request whose response is not written yet: at most the rest of one socket read.
  private var pending: [Input] = []
  private var isDelivering = false
  private var isReadHeld = false
  /// The head of a request is here, and the rest is to come.
  private var incompleteSince: NIODeadline?
  /// It has received a response: it may be closed between two requests, as HTTP allows at any time.
  private var isServed = false

  init(_ server: HTTPServerCore, _ channel: any Channel) {
    self.server = server
    self.channel = channel
    peer = AdmittedPeer(server.control, channel)
  }

  // MARK: Life

  /// TCP has accepted it.
  func begin() {
    server.connections.add(self)
    limitTime()
  }

  /// The first byte has arrived: adds the handlers for HTTP behind the others.
  func install() throws {
    let codec = HTTPServerCodec(limit: server.control.admission.maxRequestBytes)
    self.codec = codec
    try channel.pipeline.syncOperations.addHandlers([codec.encoder, codec.decoder, self])
  }

  /// The channel is closed.
  func end() {
    deadline?.cancel()
    sending.end()
    server.connections.remove(self)
    peer.close()
    let exchange = exchange
    state = .over
    pending = []
    exchange?.end(stall ?? NetError(.lost, "the client closed the connection"))
  }

  /// The client reads nothing of what it is sent.
  private func giveUp() {
    stall = NetError(.timeout, "the client read nothing for \(server.limits.patience) ms")
    // Writes that wait fail, and with them their responses.
    close()
  }

  func close() { channel.close(promise: nil) }

  /// Closes a connection that has been idle this long since its last response, or whose request has been incomplete this long. A new one
  /// keeps its time: a busy client may be slow to send the first request, and an address has only so many of these.
  func makeRoom(after patience: TimeAmount) {
    switch state {
    case .waiting(let since): if isServed, unsentEnds == 0, since + patience <= .now() { close() }
    case .serving:
      if let since = incompleteSince, since + patience <= .now() { timeOut(after: patience) }
    case .closing, .over: return
    }
  }

  /// Closes a connection that waits for a request, and has sent everything.
  func closeIfWaiting() {
    if case .waiting = state, unsentEnds == 0 { close() }
  }

  private var exchange: HTTPServerExchange? {
    if case .serving(let exchange) = state { exchange } else { nil }
  }

  // MARK: Of the channel

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    pending.append(.part(unwrapInboundIn(data)))
    deliver()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    // The client closed in the middle of a request.
    case HTTPParserError.invalidEOFState: close()
    case is HTTPParserError, is ByteToMessageDecoderError:
      pending.append(.garbage(error))
      deliver()
    default: close()
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    limitIncomplete()
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    if mayRead { context.read() } else { isReadHeld = true }
  }

  /// False while the client has to wait: with the next request for this one's response, or with a body that its receiver has paused.
  private var mayRead: Bool { exchange.map { !$0.isRead && !$0.isPaused } ?? true }

  // MARK: Requests

  /// Takes what was read, as far as it may be taken now.
  private func deliver() {
    guard !isDelivering else { return }
    isDelivering = true
    while mayRead, !pending.isEmpty {
      switch pending.removeFirst() {
      case .part(.head(let head)): if case .waiting = state { begin(head) }
      case .part(.body(let buffer)): take(buffer)
      case .part(.end):
        // The server's code may take its time.
        if exchange != nil { deadline?.cancel() }
        endIncomplete()
        exchange?.takeEnd()
      case .garbage(let error): refuse(error)
      }
    }
    isDelivering = false
    if isReadHeld && mayRead {
      isReadHeld = false
      context?.read()
    }
  }

  private func begin(_ head: HTTPRequestHead) {
    limitTime()
    let exchange = HTTPServerExchange(head, peer: peer.name, on: self, channel.eventLoop, server.gate)
    state = .serving(exchange)
    let request = ServerAdmission.Request(
      target: head.uri, hosts: head.headers["Host"], origins: head.headers["Origin"],
      authorizations: head.headers["Authorization"], isFromLoopback: peer.isLoopback,
      isHTTP10: head.version == .http1_0)
    if let refusal = peer.admit(request) { return refuse(refusal) }
    decide(exchange)
    guard !exchange.isAnswered else { return }
    guard !exchange.announcesTooMuch else { return refuseTooLarge(exchange) }
    guard exchange.awaitsContinue else { return }
    if case .discarded(let response) = exchange.input {
      // The client has not sent the body yet, and need not.
      exchange.input = .ended
      answer(response, in: exchange)
    } else {
      let head = HTTPResponseHead(version: .http1_1, status: .continue)
      context?.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }
  }

  /// A request that is not complete after the read that brought its head is counted until it is. Those whose body is read as it comes have
  /// a rule of their own.
  private func limitIncomplete() {
    guard let exchange, !exchange.isRead, !exchange.isAnswered, !exchange.isStreamed else { return }
    if let refusal = peer.awaitBody() { return refuse(refusal) }
    if incompleteSince == nil { incompleteSince = .now() }
  }

  private func endIncomplete() {
    incompleteSince = nil
    peer.endBody()
  }

  private func decide(_ exchange: HTTPServerExchange) {
    let limits = server.limits
    switch server.decide(exchange.request) {
    case .answer(let response): exchange.expect(.discarded(response), limit: limits.body)
    case .receive(let limit, let receive): exchange.expect(.collected(receive), limit: limit ?? limits.body)
    case .task(let limit, let respond):
      exchange.expect(.collected(Self.inTask(respond)), limit: limit ?? limits.body)
    case .stream(let limit, let begin):
      exchange.expect(.ended, limit: limit)
      let receive = begin(exchange.makeReply())
      exchange.expect(.streamed(receive), limit: limit)
      limitBody(of: exchange)
    case .webSocket(let subprotocol, let begin):
      if let upgrade = HTTPUpgrade(exchange.head, on: channel, subprotocol: subprotocol, begin) {
        exchange.expect(.upgrade(upgrade), limit: 0)
      } else {
        exchange.expect(.discarded(.webSocketOnly), limit: limits.body)
      }
    case .refuse(let status, let text):
      exchange.expect(.ended, limit: limits.body)
      refuse(ServerAdmission.Refusal(kind: .decision, status: status, text: text))
    }
  }

  /// The receiver that has a request answered in a task.
  private static func inTask(
    _ respond: @escaping @Sendable (HTTPServer.Request) async -> HTTPServer.Response
  ) -> @Sendable (HTTPServer.Request, HTTPReply) -> Void {
    { request, reply in
      let task = Task { reply.send(await respond(request)) }
      reply.whenOver { problem in if problem != nil { task.cancel() } }
    }
  }

  private func take(_ buffer: ByteBuffer) {
    guard let exchange else { return }
    guard exchange.take(buffer) else { return refuseTooLarge(exchange) }
    limitBody(of: exchange)
  }

  /// The receiver of the body has paused or wants more.
  func pauseChanged(in exchange: HTTPServerExchange) {
    guard self.exchange === exchange, !exchange.isRead else { return }
    limitBody(of: exchange)
    deliver()
  }

  /// A streamed body may take as long as it moves, also behind an answer that has begun; where it stands still because its receiver has
  /// paused it, the client is not to blame.
  private func limitBody(of exchange: HTTPServerExchange) {
    guard self.exchange === exchange, exchange.isStreamed else { return }
    if exchange.isPaused { deadline?.cancel() } else { limitTime() }
  }

  // MARK: Refusals

  private func refuse(_ error: any Error) {
    let limit = server.control.admission.maxRequestBytes
    switch (state, error) {
    case (.waiting, HTTPParserError.headerOverflow):
      refuse(
        ServerAdmission.Refusal(
          kind: .tooLarge, status: 431, text: "a request line and its headers may have at most \(limit) bytes"
        ))
    case (.waiting, _):
      let text = "this is not an HTTP/1.1 request"
      peer.note(ServerAdmission.Refusal(kind: .invalid, status: 400, text: text))
      respond(.text(text + "\n", status: 400), to: nil, isLast: true)
    case (.serving(let exchange), _):
      exchange.fail(NetError(.protocolError, "the client sent an invalid request"))
      guard !exchange.isAnswered else { return close() }
      let text = "the rest of this request is not HTTP/1.1"
      peer.note(ServerAdmission.Refusal(kind: .invalid, status: 400, text: text))
      answer(.text(text + "\n", status: 400), in: exchange)
    case (.closing, _), (.over, _): return
    }
  }

  /// The rules, or the server's code, refuse the request.
  private func refuse(_ refusal: ServerAdmission.Refusal) {
    peer.note(refusal)
    let response = HTTPServer.Response.refusal(refusal.status ?? 503, refusal.text)
    if let exchange {
      exchange.input = .ended
      respond(response, to: exchange, isLast: true)
    } else {
      respond(response, to: nil, isLast: true)
    }
  }

  private func refuseTooLarge(_ exchange: HTTPServerExchange) {
    let problem = exchange.tooLarge
    exchange.fail(problem)
    guard !exchange.isAnswered else { return close() }
    peer.note(ServerAdmission.Refusal(kind: .tooLarge, status: 413, text: problem.text))
    respond(.refusal(413, problem.text), to: exchange, isLast: true)
  }

  // MARK: Responses

  /// The server's code answers.
  func answer(_ response: HTTPServer.Response, in exchange: HTTPServerExchange) {
    guard self.exchange === exchange, !exchange.isAnswered else { return }
    // While clients wait for a connection, each gets one response.
    let isLast =
      !exchange.isRead || !exchange.head.isKeepAlive || HTTPUpgrade.endsHTTP(exchange.head)
      || server.connections.isCrowded || server.connections.isStopping
      || response.headers.contains {
        $0.name.lowercased() == "connection" && $0.value.lowercased() == "close"
      }
    respond(response, to: exchange, isLast: isLast)
  }

  private func respond(_ response: HTTPServer.Response, to exchange: HTTPServerExchange?, isLast: Bool) {
    guard let context else { return refuseBeforeHTTP(response) }
    endIncomplete()
    // A streamed body is still limited.
    if exchange?.isStreamed != true { deadline?.cancel() }
    let writer = HTTPResponseWriter(
      context, to: exchange?.head, isLast: isLast,
      HTTPResponseWriter.Events(
        wrote: { [self] in sending.wrote() }, taken: { [self] in sending.taken() },
        ends: { [self] isLast in ending(exchange, isLast) },
        sent: { [self] in sent(exchange) },
        failed: { [self] problem in
          exchange?.end(stall ?? problem)
          close()
        }))
    exchange?.begin(writer)
    if exchange == nil { state = .closing }
    let (loop, gate, limit) = (channel.eventLoop, server.gate, server.limits.backlog)
    writer.begin(response) { HTTPStream(on: loop, gate, limit: limit) }
  }

  /// The end of a response is about to be written.
  private func ending(_ exchange: HTTPServerExchange?, _ isLast: Bool) {
    state = isLast ? .closing : .waiting(since: .now())
    isServed = true
    unsentEnds += 1
    // The time until the next request begins when the end is sent.
    deadline?.cancel()
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    // Behind the end, also when this is within a read.
    guard !isLast else { return }
    channel.eventLoop.execute {
      bound.value.deliver()
      bound.value.limitIncomplete()
    }
  }

  /// A response was sent to its end.
  private func sent(_ exchange: HTTPServerExchange?) {
    unsentEnds -= 1
    exchange?.end(nil)
    // Closed now, the connection would cut the response behind this one off.
    guard unsentEnds == 0 else { return }
    switch state {
    case .waiting:
      // The server stops since the head of this response was written.
      if server.connections.isStopping { return close() }
      state = .waiting(since: .now())
      limitTime()
    // While clients wait for a connection, one that was refused does not keep its own.
    case .closing:
      if exchange?.isRead ?? false || server.connections.isCrowded { close() } else { linger() }
    case .serving, .over: return
    }
  }

  /// Half-closes, and discards what arrives until the client closes or its time is up.
  private func linger() {
    limitTime(Self.lingering)
    channel.close(mode: .output, promise: nil)
    deliver()
  }

  /// Answers a client that has sent nothing yet. What the system does not take at once is discarded: a client cannot hold a connection by
  /// not reading.
  private func refuseBeforeHTTP(_ response: HTTPServer.Response) {
    state = .closing
    guard case .bytes(let body) = response.content else { return close() }
    let status = HTTPResponseStatus(statusCode: response.status)
    var text = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
    for (name, value) in response.headers { text += "\(name): \(value)\r\n" }
    text += "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n"
    channel.writeAndFlush(ByteBuffer(bytes: Array(text.utf8) + body), promise: nil)
    close()
  }

  /// Refuses a client before its first byte, for example because too many are half-open.
  func refuseAtOnce(_ refusal: ServerAdmission.Refusal) {
    refuseBeforeHTTP(.refusal(refusal.status ?? 503, refusal.text))
  }

  // MARK: Time

  private func limitTime(_ milliseconds: Int? = nil) {
    deadline?.cancel()
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    deadline = LoopTimer(
      on: channel.eventLoop, in: .milliseconds(Int64(milliseconds ?? server.limits.patience))
    ) {
      bound.value.timeOut()
    }
  }

  /// - Parameter patience: how long was waited; nil: the patience of the limits.
  private func timeOut(after patience: TimeAmount? = nil) {
    let milliseconds = patience.map { Int($0.nanoseconds / 1_000_000) } ?? server.limits.patience
    let text = "a request must arrive within \(milliseconds) ms"
    switch state {
    case .waiting where !isServed:
      refuse(ServerAdmission.Refusal(kind: .timeout, status: 408, text: text))
    case .serving(let exchange) where !exchange.isRead:
      let problem = NetError(.timeout, "the client did not send the rest of its request in time")
      let wasAnswered = exchange.isAnswered
      exchange.fail(problem)
      // The server's code may have ended its answer, or given one.
      guard self.exchange === exchange, wasAnswered == exchange.isAnswered else { return }
      guard wasAnswered else {
        return refuse(ServerAdmission.Refusal(kind: .timeout, status: 408, text: text))
      }
      exchange.end(problem)
      close()
    default: close()
    }
  }

  // MARK: WebSocket

  /// The request is complete, and the server's code accepts it as a WebSocket.
  func upgrade(_ upgrade: HTTPUpgrade) {
    guard let context, let codec, let exchange else { return }
    guard !server.connections.isStopping else {
      return answer(.refusal(503, "the server is stopping"), in: exchange)
    }
    deadline?.cancel()
    sending.end()
    state = .over
    server.connections.remove(self)
    exchange.end(nil)
    do {
      let socket = try upgrade.perform(context, codec, server.limits.webSocket, peer: peer.name)
      server.connections.add(socket, on: channel)
    } catch {
      close()
    }
  }
}

extension HTTPServer.Response {
  /// A response that refuses a request.
  static func refusal(_ status: Int, _ text: String) -> HTTPServer.Response {
    var response = HTTPServer.Response.text(text, status: status)
    switch status {
    case 401: response.headers.append(("WWW-Authenticate", "Bearer"))
    case 503: response.headers.append(("Retry-After", "1"))
    default: break
    }
    return response
  }

  /// The response to a request that should have asked for a WebSocket.
  static var webSocketOnly: HTTPServer.Response {
    var response = HTTPServer.Response.text("only WebSocket connections are accepted here", status: 426)
    // With the version, for clients of another one, RFC 6455 section 4.4.
    response.headers += [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Connection", "close")]
    return response
  }
}
