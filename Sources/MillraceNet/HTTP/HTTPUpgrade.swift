internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket

/// The server's answer to a WebSocket handshake, RFC 6455 section 4.2.
struct HTTPUpgrade {
  /// The headers of the answer.
  let headers: HTTPHeaders
  let subprotocol: String?
  /// Receives the socket, and returns the receiver of its events.
  let begin: @Sendable (WebSocket) -> @Sendable (WebSocketEvent) -> Void

  /// True when a request is a well-formed handshake.
  static func isAsked(_ head: HTTPRequestHead) -> Bool {
    head.method == .GET && head.version == .http1_1
      && head.headers[canonicalForm: "Upgrade"].contains { $0.lowercased() == "websocket" }
      && head.headers[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
      && head.headers["Sec-WebSocket-Version"] == ["13"] && head.headers["Sec-WebSocket-Key"].count == 1
  }

  /// True when the decoder takes what follows this request for another protocol, so that no further request can be read.
  static func endsHTTP(_ head: HTTPRequestHead) -> Bool {
    head.method == .CONNECT || head.headers.contains(name: "Upgrade")
  }

  /// Makes the answer; nil when the request is not a handshake.
  init?(
    _ head: HTTPRequestHead, on channel: any Channel, subprotocol: String?,
    _ begin: @escaping @Sendable (WebSocket) -> @Sendable (WebSocketEvent) -> Void
  ) {
    guard Self.isAsked(head) else { return nil }
    var offered = HTTPHeaders()
    if let subprotocol { offered.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
    let headers = offered
    let upgrader = NIOWebSocketServerUpgrader(
      automaticErrorHandling: false,
      shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(headers) },
      upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
    let answer = NIOLoopBoundBox<HTTPHeaders?>(nil, eventLoop: channel.eventLoop)
    // Only computes, so it is done at once.
    upgrader.buildUpgradeResponse(
      channel: channel, upgradeRequest: head, initialResponseHeaders: HTTPHeaders()
    )
    .whenSuccess { answer.value = $0 }
    guard let headers = answer.value else { return nil }
    self.headers = headers
    self.subprotocol = subprotocol
    self.begin = begin
  }

  /// Makes a WebSocket of a connection: sends the answer, and replaces the HTTP handlers.
  /// - Parameters:
  ///   - context: of the handler that read the request, the last one.
  ///   - codec: the HTTP handlers before it.
  /// - Returns: the socket.
  func perform(
    _ context: ChannelHandlerContext, _ codec: HTTPServerCodec, _ limits: WebSocketLimits, peer: String
  ) throws -> WebSocket {
    let channel = context.channel
    let head = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
    context.writeAndFlush(NIOAny(HTTPServerResponsePart.head(head)), promise: nil)
    let receiver = NIOLoopBoundBox<(@Sendable (WebSocketEvent) -> Void)?>(nil, eventLoop: channel.eventLoop)
    let early = NIOLoopBoundBox<WebSocketEvent?>(nil, eventLoop: channel.eventLoop)
    let lease = NetLoop.Lease(on: .owning(channel.eventLoop))
    channel.closeFuture.whenComplete { _ in withExtendedLifetime(lease) {} }
    let socket = WebSocket(limits, on: lease.loop) { event in
      guard case .closed = event else {
        receiver.value?(event)
        return
      }
      // The receiver probably holds the socket, which holds the receiver.
      guard let receive = receiver.value.take() else {
        early.value = event
        return
      }
      receive(event)
    }
    let receive = begin(socket)
    // The server's code may close the socket at once.
    if let end = early.value { receive(end) } else { receiver.value = receive }
    do {
      try socket.attach(to: channel, isServer: true, peer: peer, host: peer, subprotocol: subprotocol)
    } catch {
      // The client has gone: the receiver is notified, and released.
      socket.cancel()
      throw error
    }
    let pipeline = channel.pipeline.syncOperations
    pipeline.removeHandler(context: context, promise: nil)
    pipeline.removeHandler(codec.encoder, promise: nil)
    // Frames that followed the request are passed on when the decoder goes, which is when it has returned from the request.
    let removed = channel.eventLoop.makePromise(of: Void.self)
    let bound = NIOLoopBound(socket, eventLoop: channel.eventLoop)
    removed.futureResult.whenComplete { _ in bound.value.begin() }
    pipeline.removeHandler(codec.decoder, promise: removed)
    return socket
  }
}

/// The handlers between bytes and requests.
struct HTTPServerCodec {
  let encoder: HTTPResponseEncoder
  let decoder: ByteToMessageHandler<HTTPRequestDecoder>

  /// - Parameter limit: bytes of the request line and the headers.
  init(limit: Int) {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = limit
    limits.maxHeaderListSize = limit
    // The encoder would add chunks to the answer to HEAD.
    var framing = HTTPResponseEncoder.Configuration()
    framing.automaticallySetFramingHeaders = false
    encoder = HTTPResponseEncoder(configuration: framing)
    decoder = ByteToMessageHandler(
      HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits))
  }
}
