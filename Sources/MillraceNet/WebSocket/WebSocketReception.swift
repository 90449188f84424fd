internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket

/// The beginning of a server's connection: reads the request and decides.
enum Reception {
  static func install(
    on channel: any Channel, _ limits: WebSocketLimits,
    _ decide: @escaping @Sendable (WebSocketServer.Visitor) -> WebSocketServer.Decision
  ) throws {
    let decision = NIOLoopBoundBox<WebSocketServer.Decision?>(nil, eventLoop: channel.eventLoop)
    let deadline = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(limits.open))) {
      channel.close(mode: .all, promise: nil)
    }
    channel.closeFuture.whenComplete { _ in deadline.cancel() }
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: limits.frame, automaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        let answer = decide(
          WebSocketServer.Visitor(
            target: head.uri, headers: head.headers.map { ($0.name, $0.value) },
            place: channel.remoteAddress?.description ?? "somebody"))
        decision.value = answer
        guard case .accept(let subprotocol, _) = answer else {
          return channel.eventLoop.makeSucceededFuture(nil)
        }
        var headers = HTTPHeaders()
        if let subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
        return channel.eventLoop.makeSucceededFuture(headers)
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          guard case .accept(let subprotocol, let receive)? = decision.value else { return }
          deadline.cancel()
          try WebSocket.accept(channel, limits, subprotocol, receive)
        }
      })
    let refusal = Refusal(decision)
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

  /// Answers whoever gets no WebSocket.
  private final class Refusal: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    private let decision: NIOLoopBoundBox<WebSocketServer.Decision?>

    init(_ decision: NIOLoopBoundBox<WebSocketServer.Decision?>) { self.decision = decision }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .end = unwrapInboundIn(data) else { return }
      var status = 426
      var text = "a WebSocket is what there is here"
      if case .refuse(let number, let words)? = decision.value { (status, text) = (number, words) }
      var head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: status))
      head.headers.add(name: "Content-Length", value: "\(text.utf8.count)")
      head.headers.add(name: "Connection", value: "close")
      if status == 426 {
        head.headers.add(name: "Upgrade", value: "websocket")
        // For one that speaks another version, RFC 6455 section 4.4.
        head.headers.add(name: "Sec-WebSocket-Version", value: "13")
      }
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
}
