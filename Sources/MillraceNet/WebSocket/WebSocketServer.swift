internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// A server of WebSockets: for a bot's backend that comes to the bot, and for doubles of services.
///
/// It listens on this machine unless told otherwise, and its door (`WebSocketDoor`) refuses pages of other sites with status 403,
/// a host name that is not the server's with 403 too, a missing token with 401, one too many with 503, a request that is too large with 431, one that does not
/// come in time with 408. Whoever asks for something else than a WebSocket gets 426.
///
/// When this process may open no more files, visitors wait in the system's queue, and are tried again a second later.
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
  private let figures: DoorFigures
  /// The port it listens on: the one asked for, or the one the system chose for 0.
  public let port: Int
  /// Visitors whose handshake is not answered yet. Any thread.
  public var halfOpen: Int { figures.halfOpen.load(ordering: .relaxed) }
  /// Visitors that are in. Any thread.
  public var visitors: Int { figures.visitors.load(ordering: .relaxed) }
  /// Visitors that were refused so far. Any thread.
  public var refused: Int { figures.refused.load(ordering: .relaxed) }

  private init(_ channel: any Channel, _ figures: DoorFigures) {
    self.channel = channel
    self.figures = figures
    port = channel.localAddress?.port ?? 0
  }

  /// Begins to listen.
  /// - Parameters:
  ///   - host: the address to listen at; by default this machine's own, which no other can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: a certificate for TLS; nil: plain, which beyond this machine the door has to allow.
  ///   - limits: sizes and times of a visitor's socket.
  ///   - door: who may come in.
  ///   - refused: told of those who may not, on the thread of the sockets, once a second at most.
  ///   - decide: on the thread of the sockets; asked for those whom the door lets in.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(), door: WebSocketDoor = WebSocketDoor(),
    refused: @escaping @Sendable (WebSocketDoor.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Visitor) -> Decision
  ) async throws(NetProblem) -> WebSocketServer {
    let result = await withCheckedContinuation { continuation in
      listen(
        host: host, port: port, identity: identity, limits: limits, door: door, refused: refused,
        decide: decide
      ) {
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
  ///   - identity: a certificate for TLS; nil: plain, which beyond this machine the door has to allow.
  ///   - limits: sizes and times of a visitor's socket.
  ///   - door: who may come in.
  ///   - refused: told of those who may not, on the thread of the sockets, once a second at most.
  ///   - decide: on the thread of the sockets; asked for those whom the door lets in.
  ///   - done: on the thread of the sockets; at once on the caller's where that cannot be made.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(), door: WebSocketDoor = WebSocketDoor(),
    refused: @escaping @Sendable (WebSocketDoor.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Visitor) -> Decision,
    done: @escaping @Sendable (Result<WebSocketServer, NetProblem>) -> Void
  ) {
    do throws(NetProblem) { try NetLoop.begin() } catch { return done(.failure(error)) }
    let made: TLSContexts.Made?
    do throws(NetProblem) {
      if let problem = door.problem(listeningAt: host, hasTLS: identity != nil) { throw problem }
      made = try identity?.context()
    } catch {
      NetLoop.shared.run { done(.failure(error)) }
      return
    }
    NetLoop.shared.run {
      let loop = NetLoop.shared.loop
      let figures = DoorFigures()
      let keeper = Doorkeeper(
        door, host: host, certificate: made?.certificate, figures: figures, on: loop, tell: refused)
      bind(host, port, NIOLoopBound(keeper, eventLoop: loop), identity, limits, decide).whenComplete {
        result in
        done(
          result.map { WebSocketServer($0, figures) }.mapError { error in
            let text = (error as? IOError).map { NetWords.text(errno: $0.errnoCode) } ?? "\(error)"
            return NetProblem(.connect, "nobody can listen at \(host):\(port): \(text)")
          })
      }
    }
  }

  private static func bind(
    _ host: String, _ port: Int, _ keeper: NIOLoopBound<Doorkeeper>, _ identity: NetIdentity?,
    _ limits: WebSocketLimits, _ decide: @escaping @Sendable (Visitor) -> Decision
  ) -> EventLoopFuture<any Channel> {
    ServerBootstrap(group: NetLoop.shared.group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptErrors(keeper.value))
        }
      }
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try Reception.install(
            on: channel, try context(identity, keeper.value, channel), keeper.value, limits, decide)
        }
      }
      .bind(host: host, port: port)
  }

  /// Looked up for every visitor: a certificate that was renewed counts from then on, and one that was broken is told.
  private static func context(
    _ identity: NetIdentity?, _ keeper: Doorkeeper, _ channel: any Channel
  ) throws -> NIOSSLContext? {
    do { return try identity?.context().context } catch {
      let refusal = WebSocketDoor.Refusal(kind: .certificate, status: nil, text: "\(error)")
      keeper.note(refusal, from: channel.remoteAddress?.description ?? "somebody")
      throw refusal
    }
  }

  /// Listens no more. Sockets that are open stay so.
  public func stop() { channel.close(promise: nil) }
}

/// Reports why this process cannot accept connections, and leaves them in the system's queue for a while.
///
/// A connection that was not accepted stays in the queue, and the system reports it again and again: without a pause the thread would do
/// nothing else. SwiftNIO has a handler for that, which it does not use for servers of this kind.
private final class AcceptErrors: ChannelInboundHandler {
  typealias InboundIn = any Channel

  /// Between two attempts to take visitors from the queue.
  private static let pause = TimeAmount.seconds(1)

  private let keeper: Doorkeeper
  private var isPaused = false

  init(_ keeper: Doorkeeper) { self.keeper = keeper }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? IOError {
      keeper.note(
        WebSocketDoor.Refusal(kind: .files, status: nil, text: NetWords.text(errno: error.errnoCode)),
        from: "somebody")
      pause(context)
    }
    context.fireErrorCaught(error)
  }

  private func pause(_ context: ChannelHandlerContext) {
    guard !isPaused else { return }
    isPaused = true
    setReading(false, context.channel)
    let bound = NIOLoopBound((self, context.channel), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.pause) {
      let (handler, channel) = bound.value
      handler.isPaused = false
      handler.setReading(true, channel)
    }
  }

  private func setReading(_ isReading: Bool, _ channel: any Channel) {
    channel.setOption(.autoRead, value: isReading).whenFailure { _ in
      // The server has stopped: nobody is taken in any case.
    }
  }
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
