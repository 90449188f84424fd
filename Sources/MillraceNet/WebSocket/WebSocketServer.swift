internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// A server of WebSockets: for a bot's backend that comes to the bot, and for doubles of services.
///
/// It listens on this machine unless told otherwise. Whoever asks for something else than a WebSocket gets status 426; who has
/// not asked for anything when the time of the limits for opening is over is hung up on.
@safe
public final class WebSocketServer: Sendable {
  /// Somebody who wants a WebSocket.
  public struct Visitor: Sendable {
    /// Path and query.
    public let target: String
    /// What they sent with the handshake.
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
      listen(host: host, port: port, identity: identity, limits: limits, decide: decide) {
        continuation.resume(returning: $0)
      }
    }
    return try result.get()
  }

  /// Begins to listen, and tells of it on the thread of the sockets. Needs no task, which would wait where others keep all
  /// threads of tasks busy.
  /// - Parameters:
  ///   - host: the address to listen at; by default this machine's own, which no other can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: a certificate for TLS; nil: plain.
  ///   - limits: sizes and times of a visitor's socket.
  ///   - decide: on the thread of the sockets.
  ///   - done: on the thread of the sockets.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(),
    decide: @escaping @Sendable (Visitor) -> Decision,
    done: @escaping @Sendable (Result<WebSocketServer, NetProblem>) -> Void
  ) {
    let context: NIOSSLContext?
    do throws(NetProblem) { context = try identity?.context() } catch {
      NetLoop.shared.run { done(.failure(error)) }
      return
    }
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
      done(
        result.map { WebSocketServer($0) }.mapError { error in
          let text = (error as? IOError).map { NetWords.text(errno: $0.errnoCode) } ?? "\(error)"
          return NetProblem(.connect, "nobody can listen at \(host):\(port): \(text)")
        })
    }
  }

  /// Listens no more. Sockets that are open stay so.
  public func stop() { channel.close(promise: nil) }
}

extension WebSocket {
  /// A server's end of an upgraded channel.
  static func accept(
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
