internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// A WebSocket server: for a backend that connects to the bot, and for doubles of services.
///
/// It listens on this machine by default. Its admission rules (`WebSocketAdmission`) refuse other origins and foreign host names with
/// status 403, a missing token with 401, too many connections with 503, too large a request with 431 and one that does not arrive in
/// time with 408. A request that is not for a WebSocket gets 426.
///
/// When this process is out of file descriptors, new connections wait in the system's queue; accepting is tried again a second later.
@safe
public final class WebSocketServer: Sendable {
  /// A client that asks for a WebSocket.
  public struct Client: Sendable {
    /// Path and query.
    public let target: String
    /// The headers of its handshake.
    public let headers: [(name: String, value: String)]
    /// Its address.
    public let peer: String

    /// The value of a header; the name is case-insensitive.
    public subscript(header: String) -> String? {
      headers.first { $0.name.lowercased() == header.lowercased() }?.value
    }
  }

  /// What the server's code decides about a client.
  public enum Decision: Sendable {
    /// Open the WebSocket. The closure receives the socket and returns the receiver of its events.
    case accept(protocol: String? = nil, @Sendable (WebSocket) -> @Sendable (WebSocketEvent) -> Void)
    /// Answer with this status and text.
    case refuse(status: Int, String)
  }

  private let channel: any Channel
  private let figures: ServerCounters
  /// The port it listens on: the one requested, or the one the system chose for 0.
  public let port: Int
  /// Connections whose handshake is not answered yet. Any thread.
  public var halfOpen: Int { figures.halfOpen.load(ordering: .relaxed) }
  /// Open connections. Any thread.
  public var connections: Int { figures.connections.load(ordering: .relaxed) }
  /// Connections refused so far. Any thread.
  public var refused: Int { figures.refused.load(ordering: .relaxed) }

  private init(_ channel: any Channel, _ figures: ServerCounters) {
    self.channel = channel
    self.figures = figures
    port = channel.localAddress?.port ?? 0
  }

  /// Starts listening.
  /// - Parameters:
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - limits: size limits and timeouts of each connection.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the network thread, at most once a second.
  ///   - decide: called on the network thread for each client the rules admit.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(), admission: WebSocketAdmission = WebSocketAdmission(),
    refused: @escaping @Sendable (WebSocketAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision
  ) async throws(NetError) -> WebSocketServer {
    let result = await withCheckedContinuation { continuation in
      listen(
        host: host, port: port, identity: identity, limits: limits, admission: admission, refused: refused,
        decide: decide
      ) {
        continuation.resume(returning: $0)
      }
    }
    return try result.get()
  }

  /// Starts listening and calls `done` on the network thread. Needs no task, which would be delayed where others occupy all threads of the
  /// concurrency pool.
  /// - Parameters:
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - limits: size limits and timeouts of each connection.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the network thread, at most once a second.
  ///   - decide: called on the network thread for each client the rules admit.
  ///   - done: called on the network thread, or at once on the caller's when that thread cannot be started.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil,
    limits: WebSocketLimits = WebSocketLimits(), admission: WebSocketAdmission = WebSocketAdmission(),
    refused: @escaping @Sendable (WebSocketAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision,
    done: @escaping @Sendable (Result<WebSocketServer, NetError>) -> Void
  ) {
    do throws(NetError) { try NetLoop.begin() } catch { return done(.failure(error)) }
    let made: TLSContexts.Made?
    do throws(NetError) {
      if let problem = admission.problem(listeningAt: host, hasTLS: identity != nil) { throw problem }
      made = try identity?.context()
    } catch {
      NetLoop.shared.run { done(.failure(error)) }
      return
    }
    NetLoop.shared.run {
      let loop = NetLoop.shared.loop
      let figures = ServerCounters()
      let control = AdmissionControl(
        admission, host: host, certificate: made?.certificate, figures: figures, on: loop, report: refused)
      bind(host, port, NIOLoopBound(control, eventLoop: loop), identity, limits, decide).whenComplete {
        result in
        done(
          result.map { WebSocketServer($0, figures) }.mapError { error in
            let text = (error as? IOError).map { NetErrorMessages.text(errno: $0.errnoCode) } ?? "\(error)"
            return NetError(.connect, "cannot listen on \(host):\(port): \(text)")
          })
      }
    }
  }

  private static func bind(
    _ host: String, _ port: Int, _ control: NIOLoopBound<AdmissionControl>, _ identity: NetIdentity?,
    _ limits: WebSocketLimits, _ decide: @escaping @Sendable (Client) -> Decision
  ) -> EventLoopFuture<any Channel> {
    ServerBootstrap(group: NetLoop.shared.group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptErrors(control.value))
        }
      }
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try ServerHandshake.install(
            on: channel, try context(identity, control.value, channel), control.value, limits, decide)
        }
      }
      .bind(host: host, port: port)
  }

  /// Looked up for each connection, so that a renewed certificate takes effect at once and a broken one is reported.
  private static func context(
    _ identity: NetIdentity?, _ control: AdmissionControl, _ channel: any Channel
  ) throws -> NIOSSLContext? {
    do { return try identity?.context().context } catch {
      let refusal = WebSocketAdmission.Refusal(kind: .certificate, status: nil, text: "\(error)")
      control.note(refusal, from: channel.remoteAddress?.description ?? "unknown address")
      throw refusal
    }
  }

  /// Stops listening. Open connections stay open.
  public func stop() { channel.close(promise: nil) }
}

/// Reports that this process cannot accept connections, and pauses accepting.
///
/// A connection that could not be accepted stays in the queue, and the system reports it again and again: without a pause the thread
/// would do nothing else. SwiftNIO has a handler for this, but does not use it for servers of this kind.
private final class AcceptErrors: ChannelInboundHandler {
  typealias InboundIn = any Channel

  /// The time between two attempts to accept.
  private static let pause = TimeAmount.seconds(1)

  private let control: AdmissionControl
  private var isPaused = false

  init(_ control: AdmissionControl) { self.control = control }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? IOError {
      control.note(
        WebSocketAdmission.Refusal(
          kind: .descriptors, status: nil, text: NetErrorMessages.text(errno: error.errnoCode)),
        from: "unknown address")
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
      // The server has stopped accepting anyway.
    }
  }
}

extension WebSocket {
  /// The server's end of an upgraded channel.
  static func accept(
    _ channel: any Channel, _ limits: WebSocketLimits, _ subprotocol: String?,
    _ receive: (WebSocket) -> @Sendable (WebSocketEvent) -> Void
  ) throws {
    let box = NIOLoopBoundBox<(@Sendable (WebSocketEvent) -> Void)?>(nil, eventLoop: channel.eventLoop)
    let socket = WebSocket(limits, on: channel.eventLoop) { box.value?($0) }
    box.value = receive(socket)
    let peer = channel.remoteAddress?.description ?? "unknown address"
    try socket.attach(
      to: channel, isServer: true, peer: peer, host: peer, subprotocol: subprotocol, hasCodec: true)
  }
}
