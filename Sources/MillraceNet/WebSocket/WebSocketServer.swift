internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import NIOWebSocket

/// A server of WebSockets: for a bot's backend that comes to the bot, and for doubles of services.
///
/// It listens on this machine unless told otherwise. Whoever asks for something else than a WebSocket gets status 426.
@safe
public final class WebSocketServer: Sendable {
  /// Somebody who wants a WebSocket.
  public struct Visitor: Sendable {
    /// Path and query.
    public let target: String
    public let headers: [(name: String, value: String)]
    /// Where they come from.
    public let place: String

    /// A header's value, its name in any case.
    public subscript(header: String) -> String? {
      headers.first { $0.name.lowercased() == header.lowercased() }?.value
    }
  }

  /// What becomes of a visitor.
  public enum Decision: Sendable {
    /// They get a socket whose events go there. The closure is handed the socket first.
    case accept(protocol: String? = nil, @Sendable (WebSocket) -> @Sendable (WebSocketEvent) -> Void)
    /// They get this status and text.
    case refuse(status: Int, String)
  }

  private let channel: any Channel
  /// The port it listens on: the one asked for, or the one the system chose for 0.
  public let port: Int

  private init(_ channel: any Channel) {
    self.channel = channel
    port = channel.localAddress?.port ?? 0
  }

  /// Begins to listen.
  /// - Parameters:
  ///   - host: the address to listen at; by default this machine's own, which no other can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: a certificate for TLS; nil: plain.
  ///   - limits: sizes and times of a visitor's socket.
  ///   - decide: on the thread of the sockets.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(),
    decide: @escaping @Sendable (Visitor) -> Decision
  ) async throws(NetProblem) -> WebSocketServer {
    let result = await withCheckedContinuation { continuation in
      open(host: host, port: port, identity: identity, limits: limits, decide: decide) {
        continuation.resume(returning: $0)
      }
    }
    return try result.get()
  }

  /// Begins to listen, without a task: what tasks run on may be waiting for this.
  /// - Parameters:
  ///   - host: the address to listen at; by default this machine's own, which no other can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: a certificate for TLS; nil: plain.
  ///   - limits: sizes and times of a visitor's socket.
  ///   - decide: on the thread of the sockets.
  ///   - ready: on the thread of the sockets, or at once where a certificate cannot be read.
  public static func open(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(), decide: @escaping @Sendable (Visitor) -> Decision,
    ready: @escaping @Sendable (Result<WebSocketServer, NetProblem>) -> Void
  ) {
    let context: NIOSSLContext?
    do { context = try identity?.context() } catch { return ready(.failure(error)) }
    let bootstrap = ServerBootstrap(group: NetLoop.shared.group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let context {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
          }
          try Reception.install(on: channel, limits, decide)
        }
      }
    bootstrap.bind(host: host, port: port).whenComplete { result in
      switch result {
      case .success(let channel): ready(.success(WebSocketServer(channel)))
      case .failure(let error):
        let text = (error as? IOError).map { NetWords.text(errno: $0.errnoCode) } ?? "\(error)"
        ready(.failure(NetProblem(.connect, "nobody can listen at \(host):\(port): \(text)")))
      }
    }
  }

  /// Listens no more. Sockets that are open stay so.
  public func stop() { channel.close(promise: nil) }
}

/// The beginning of a server's connection: reads the request and decides.
private enum Reception {
  static func install(
    on channel: any Channel, _ limits: WebSocketLimits,
    _ decide: @escaping @Sendable (WebSocketServer.Visitor) -> WebSocketServer.Decision
  ) throws {
    let decision = NIOLoopBoundBox<WebSocketServer.Decision?>(nil, eventLoop: channel.eventLoop)
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: limits.message, automaticErrorHandling: false,
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
      if status == 426 { head.headers.add(name: "Upgrade", value: "websocket") }
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

extension WebSocket {
  /// A server's end of an upgraded channel.
  fileprivate static func accept(
    _ channel: any Channel, _ limits: WebSocketLimits, _ subprotocol: String?,
    _ receive: (WebSocket) -> @Sendable (WebSocketEvent) -> Void
  ) throws {
    let box = NIOLoopBoundBox<(@Sendable (WebSocketEvent) -> Void)?>(nil, eventLoop: channel.eventLoop)
    let socket = WebSocket(limits, on: channel.eventLoop) { box.value?($0) }
    box.value = receive(socket)
    let place = channel.remoteAddress?.description ?? "somebody"
    try socket.attach(
      to: channel, isServer: true, place: place, host: place, subprotocol: subprotocol, hasCodec: true)
  }
}
