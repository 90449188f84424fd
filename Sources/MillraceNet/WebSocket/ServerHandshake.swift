internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import NIOWebSocket

/// The server's side of the handshake: reads the request, applies the admission rules, and asks the server's code.
///
/// ```
/// (TLS) ▸ RequestLimiter ▸ HTTP, after the first byte ▸ RefusalHandler    half-open, until the handshake is answered or times out
/// (TLS) ▸ frames ▸ WebSocketHandler                                       open
/// ```
enum ServerHandshake {
  /// A connection whose handshake is not finished. On the event loop.
  final class PendingConnection {
    let control: AdmissionControl
    let address: AdmissionCount.Address
    let peer: String
    /// It was answered with an HTTP status; nothing more is sent.
    var isAnswered = false
    var isOpen = false
    /// What the server's code decided.
    var decision: WebSocketServer.Decision?
    var refusal: WebSocketAdmission.Refusal?

    init(_ control: AdmissionControl, _ channel: any Channel) {
      self.control = control
      address = AdmissionCount.address(channel.remoteAddress?.ipAddress)
      peer = channel.remoteAddress?.description ?? "unknown address"
    }

    func note(_ refusal: WebSocketAdmission.Refusal) {
      isAnswered = true
      control.note(refusal, from: peer)
    }
  }

  static func install(
    on channel: any Channel, _ context: NIOSSLContext?, _ control: AdmissionControl,
    _ limits: WebSocketLimits,
    _ decide: @escaping @Sendable (WebSocketServer.Client) -> WebSocketServer.Decision
  ) throws {
    let connection = PendingConnection(control, channel)
    let pipeline = channel.pipeline.syncOperations
    if let refusal = control.arrive(from: connection.address) {
      connection.note(refusal)
      // An answer would need a TLS handshake first, and the table of half-open connections is full.
      if context != nil { throw refusal }
      try pipeline.addHandler(RequestLimiter(connection, refusal))
      return
    }
    let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
    channel.closeFuture.whenComplete { _ in
      bound.value.control.close(from: bound.value.address, wasOpen: bound.value.isOpen)
    }
    if let context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
    let limiter = RequestLimiter(connection, nil)
    let boundLimiter = NIOLoopBound(limiter, eventLoop: channel.eventLoop)
    let deadline = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(limits.open))) {
      boundLimiter.value.timeOut(limits.open)
    }
    channel.closeFuture.whenComplete { _ in deadline.cancel() }
    let open: (ChannelHandlerContext) throws -> Void = { context in
      try installHTTP(on: context.channel, bound, boundLimiter, limits, deadline, decide)
    }
    limiter.open = open
    try pipeline.addHandler(limiter)
  }

  /// Adds the HTTP handlers behind the limiter.
  private static func installHTTP(
    on channel: any Channel, _ connection: NIOLoopBound<PendingConnection>,
    _ limiter: NIOLoopBound<RequestLimiter>,
    _ limits: WebSocketLimits,
    _ deadline: Scheduled<Void>,
    _ decide: @escaping @Sendable (WebSocketServer.Client) -> WebSocketServer.Decision
  ) throws {
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: limits.frame, automaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        let headers = judge(connection.value, channel, head, decide)
        return channel.eventLoop.makeSucceededFuture(headers)
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          guard case .accept(let subprotocol, let receive)? = connection.value.decision else { return }
          deadline.cancel()
          channel.pipeline.syncOperations.removeHandler(limiter.value, promise: nil)
          try WebSocket.accept(channel, limits, subprotocol, receive)
        }
      })
    let refusal = RefusalHandler(connection.value)
    let bound = NIOLoopBound(refusal, eventLoop: channel.eventLoop)
    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
      withPipeliningAssistance: false,
      withServerUpgrade: (
        upgraders: [upgrader],
        completionHandler: { context in
          context.pipeline.syncOperations.removeHandler(bound.value, promise: nil)
        }
      ))
    try channel.pipeline.syncOperations.addHandler(refusal)
  }

  /// The headers of the answer that opens the WebSocket, or nil for a refusal.
  private static func judge(
    _ connection: PendingConnection, _ channel: any Channel, _ head: HTTPRequestHead,
    _ decide: (WebSocketServer.Client) -> WebSocketServer.Decision
  ) -> HTTPHeaders? {
    let request = WebSocketAdmission.Request(
      target: head.uri, hosts: head.headers["Host"], origins: head.headers["Origin"],
      authorizations: head.headers["Authorization"],
      isFromLoopback: channel.remoteAddress?.ipAddress.map(WebAddress.isLoopback) ?? false)
    if let refusal = connection.control.refusal(of: request) {
      connection.refusal = refusal
      return nil
    }
    let decision = decide(
      WebSocketServer.Client(
        target: head.uri, headers: head.headers.map { ($0.name, $0.value) }, peer: connection.peer))
    connection.decision = decision
    switch decision {
    case .refuse(let status, let text):
      connection.refusal = WebSocketAdmission.Refusal(kind: .decision, status: status, text: text)
      return nil
    case .accept(let subprotocol, _):
      if let refusal = connection.control.open(from: connection.address) {
        connection.refusal = refusal
        return nil
      }
      connection.isOpen = true
      var headers = HTTPHeaders()
      if let subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
      return headers
    }
  }

  /// Answers requests that do not open a WebSocket.
  private final class RefusalHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    private let connection: PendingConnection

    init(_ connection: PendingConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .end = unwrapInboundIn(data), !connection.isAnswered else { return }
      connection.isAnswered = true
      if let refusal = connection.refusal { connection.note(refusal) }
      let status = connection.refusal?.status ?? 426
      let text = connection.refusal?.text ?? "this server only accepts WebSocket connections"
      let head = HTTPResponseHead(
        version: .http1_1, status: HTTPResponseStatus(statusCode: status),
        headers: HTTPHeaders(ServerHandshake.headers(status, text)))
      context.write(wrapOutboundOut(.head(head)), promise: nil)
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
      let bound = context.loopBound
      context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      // A refused upgrade also arrives as an error; its request is still answered.
      if !(error is NIOWebSocketUpgradeError) { context.close(promise: nil) }
    }
  }

  /// The headers of a refusal, RFC 9110.
  static func headers(_ status: Int, _ text: String) -> [(String, String)] {
    var headers = [
      ("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", "\(text.utf8.count)"),
      ("Connection", "close"),
    ]
    switch status {
    case 401: headers.append(("WWW-Authenticate", "Bearer"))
    case 426:
      headers.append(("Upgrade", "websocket"))
      // For clients of another version, RFC 6455 section 4.4.
      headers.append(("Sec-WebSocket-Version", "13"))
    case 503: headers.append(("Retry-After", "1"))
    default: break
    }
    return headers
  }
}
