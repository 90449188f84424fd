internal import NIOCore
internal import NIOHTTP1

/// One client of an `HTTPServer`: reads requests and writes their responses, one after the other. Only on the server's thread.
///
/// ```
/// waiting ──whole request──▸ answering ──response──▸ writing ──flushed──▸ waiting
///    └── patience is over: closed                       └── patience is over: closed
/// ```
final class HTTPServerConnection: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private enum State {
    case waiting(since: NIODeadline)
    case answering(Task<Void, Never>)
    case writing
  }

  private let admission: HTTPAdmission
  private let channel: any Channel
  private let respond: @Sendable (HTTPServer.Request) async -> HTTPServer.Response
  private var context: ChannelHandlerContext?
  private var state = State.waiting(since: .now())
  private var head: HTTPRequestHead?
  private var bodyBytes = 0
  private var deadline: Scheduled<Void>?
  /// It has received a response: it may be closed between two requests, as HTTP allows at any time.
  private var isServed = false

  init(
    _ admission: HTTPAdmission, _ channel: any Channel,
    _ respond: @escaping @Sendable (HTTPServer.Request) async -> HTTPServer.Response
  ) {
    self.admission = admission
    self.channel = channel
    self.respond = respond
  }

  func close() { channel.close(promise: nil) }

  /// Closes a connection that has been idle this long since its last response. A new one keeps its time: a busy client may be slow
  /// to send the first request.
  func close(idleFor patience: TimeAmount) {
    if case .waiting(let since) = state, isServed, since + patience <= .now() { close() }
  }

  /// Closes a connection that waits for a request.
  func closeIfWaiting() {
    if case .waiting = state { close() }
  }

  // MARK: Of the channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    admission.add(self)
    limitTime()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    deadline?.cancel()
    if case .answering(let task) = state { task.cancel() }
    admission.remove(self)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      bodyBytes = 0
    case .body(let buffer):
      bodyBytes += buffer.readableBytes
      guard bodyBytes > admission.limits.body, head != nil else { return }
      head = nil
      write(.text("a request body may have at most \(admission.limits.body) bytes\n", status: 413), to: nil)
    case .end:
      guard let head else { return }
      self.head = nil
      answer(head)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func limitTime() {
    deadline?.cancel()
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    deadline = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(admission.limits.patience))) {
      bound.value.close()
    }
  }

  // MARK: Answering

  private func answer(_ head: HTTPRequestHead) {
    deadline?.cancel()
    guard admission.accepts(host: head.headers.first(name: "Host")) else {
      write(.text("this host name is not allowed here\n", status: 403), to: head)
      return
    }
    let request = HTTPServer.Request(
      method: head.method.rawValue, target: head.uri, headers: head.headers.map { ($0.name, $0.value) })
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    let (respond, loop, gate) = (respond, channel.eventLoop, admission.gate)
    state = .answering(
      Task {
        let response = await respond(request)
        gate.execute(on: loop) { bound.value.write(response, to: head) }
      })
  }

  /// - Parameter head: the request; nil: one that was not read to its end, so that no other can follow.
  private func write(_ response: HTTPServer.Response, to head: HTTPRequestHead?) {
    guard let context else { return }
    state = .writing
    limitTime()
    // While clients wait for a connection, each gets one response.
    let isLast = head?.isKeepAlive != true || admission.isCrowded || admission.isStopping
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    headers.replaceOrAdd(name: "Content-Length", value: "\(response.body.count)")
    headers.replaceOrAdd(name: "Cache-Control", value: "no-store")
    headers.replaceOrAdd(name: "Connection", value: isLast ? "close" : "keep-alive")
    let status = HTTPResponseStatus(statusCode: response.status)
    let version = head?.version ?? .http1_1
    let start = HTTPResponseHead(version: version, status: status, headers: headers)
    context.write(wrapOutboundOut(.head(start)), promise: nil)
    if head?.method != .HEAD && !response.body.isEmpty {
      context.write(
        wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: response.body)))), promise: nil)
    }
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    // The next request may arrive before this response is reported as written.
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { result in
      bound.value.written(isLast: isLast, result)
    }
  }

  private func written(isLast: Bool, _ result: Result<Void, any Error>) {
    guard case .success = result, !isLast else { return close() }
    isServed = true
    guard case .writing = state else { return }
    state = .waiting(since: .now())
    limitTime()
  }
}
