internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import NIOWebSocket

/// The beginning of a server's connection: reads the request, asks at the door, and decides.
///
/// ```
/// (TLS) ▸ Gate ▸ HTTP, once a byte has come ▸ RefusalHandler    half-open, until the time of the limits is over
/// (TLS) ▸ frames ▸ WebSocketWire                                 in
/// ```
enum Reception {
  /// One visitor until they are in. On the loop.
  final class Visit {
    let keeper: Doorkeeper
    let address: DoorCount.Address
    let place: String
    /// They were answered with something else than a WebSocket, and nothing more is said.
    var isAnswered = false
    var isIn = false
    /// What the owner of the server said.
    var decision: WebSocketServer.Decision?
    var refusal: WebSocketDoor.Refusal?

    init(_ keeper: Doorkeeper, _ channel: any Channel) {
      self.keeper = keeper
      address = DoorCount.address(channel.remoteAddress?.ipAddress)
      place = channel.remoteAddress?.description ?? "somebody"
    }

    func note(_ refusal: WebSocketDoor.Refusal) {
      isAnswered = true
      keeper.note(refusal, from: place)
    }
  }

  static func install(
    on channel: any Channel, _ context: NIOSSLContext?, _ keeper: Doorkeeper, _ limits: WebSocketLimits,
    _ decide: @escaping @Sendable (WebSocketServer.Visitor) -> WebSocketServer.Decision
  ) throws {
    let visit = Visit(keeper, channel)
    let pipeline = channel.pipeline.syncOperations
    if let refusal = keeper.arrive(from: visit.address) {
      visit.note(refusal)
      // An answer would have to wait for TLS, and there is no room for those who wait.
      if context != nil { throw refusal }
      try pipeline.addHandler(Gate(visit, refusal))
      return
    }
    let bound = NIOLoopBound(visit, eventLoop: channel.eventLoop)
    channel.closeFuture.whenComplete { _ in
      bound.value.keeper.leave(from: bound.value.address, wasIn: bound.value.isIn)
    }
    if let context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
    let gate = Gate(visit, nil)
    let boundGate = NIOLoopBound(gate, eventLoop: channel.eventLoop)
    let deadline = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(limits.open))) {
      boundGate.value.endTime(limits.open)
    }
    channel.closeFuture.whenComplete { _ in deadline.cancel() }
    let open: (ChannelHandlerContext) throws -> Void = { context in
      try installHTTP(on: context.channel, bound, boundGate, limits, deadline, decide)
    }
    gate.open = open
    try pipeline.addHandler(gate)
  }

  /// Puts HTTP behind the gate.
  private static func installHTTP(
    on channel: any Channel, _ visit: NIOLoopBound<Visit>, _ gate: NIOLoopBound<Gate>,
    _ limits: WebSocketLimits,
    _ deadline: Scheduled<Void>,
    _ decide: @escaping @Sendable (WebSocketServer.Visitor) -> WebSocketServer.Decision
  ) throws {
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: limits.frame, automaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        let headers = judge(visit.value, channel, head, decide)
        return channel.eventLoop.makeSucceededFuture(headers)
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          guard case .accept(let subprotocol, let receive)? = visit.value.decision else { return }
          deadline.cancel()
          channel.pipeline.syncOperations.removeHandler(gate.value, promise: nil)
          try WebSocket.accept(channel, limits, subprotocol, receive)
        }
      })
    let refusal = RefusalHandler(visit.value)
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

  /// The headers of the answer to somebody who comes in; nil: they do not.
  private static func judge(
    _ visit: Visit, _ channel: any Channel, _ head: HTTPRequestHead,
    _ decide: (WebSocketServer.Visitor) -> WebSocketServer.Decision
  ) -> HTTPHeaders? {
    let request = WebSocketDoor.Request(
      target: head.uri, hosts: head.headers["Host"], origins: head.headers["Origin"],
      authorizations: head.headers["Authorization"],
      isFromThisMachine: channel.remoteAddress?.ipAddress.map(WebAddress.isLoopback) ?? false)
    if let refusal = visit.keeper.refusal(of: request) {
      visit.refusal = refusal
      return nil
    }
    let decision = decide(
      WebSocketServer.Visitor(
        target: head.uri, headers: head.headers.map { ($0.name, $0.value) }, place: visit.place))
    visit.decision = decision
    switch decision {
    case .refuse(let status, let text):
      visit.refusal = WebSocketDoor.Refusal(kind: .decision, status: status, text: text)
      return nil
    case .accept(let subprotocol, _):
      visit.isIn = true
      visit.keeper.enter(from: visit.address)
      var headers = HTTPHeaders()
      if let subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
      return headers
    }
  }

  /// Answers whoever gets no WebSocket.
  private final class RefusalHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    private let visit: Visit

    init(_ visit: Visit) { self.visit = visit }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .end = unwrapInboundIn(data), !visit.isAnswered else { return }
      visit.isAnswered = true
      if let refusal = visit.refusal { visit.note(refusal) }
      let status = visit.refusal?.status ?? 426
      let text = visit.refusal?.text ?? "a WebSocket is what there is here"
      let head = HTTPResponseHead(
        version: .http1_1, status: HTTPResponseStatus(statusCode: status),
        headers: HTTPHeaders(Reception.headers(status, text)))
      context.write(wrapOutboundOut(.head(head)), promise: nil)
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
      let bound = context.loopBound
      context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      // A handshake that is refused comes by as an error too; its request is still to be answered.
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
      // For one that speaks another version, RFC 6455 section 4.4.
      headers.append(("Sec-WebSocket-Version", "13"))
    case 503: headers.append(("Retry-After", "1"))
    default: break
    }
    return headers
  }
}
