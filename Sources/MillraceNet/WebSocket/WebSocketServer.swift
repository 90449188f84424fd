internal import NIOCore
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

  private let listener: ServerListener
  /// The port it listens on: the one requested, or the one the system chose for 0.
  public var port: Int { listener.port }
  /// Connections whose handshake is not answered yet. Any thread.
  public var halfOpen: Int { listener.figures.halfOpen.load(ordering: .relaxed) }
  /// Open connections. Any thread.
  public var connections: Int { listener.figures.connections.load(ordering: .relaxed) }
  /// Connections refused so far. Any thread.
  public var refused: Int { listener.figures.refused.load(ordering: .relaxed) }

  private init(_ listener: ServerListener) { self.listener = listener }

  /// Starts listening.
  /// - Parameters:
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - spreads: true: the connections are spread over as many loops as the machine has cores; false: all are on `NetLoop.shared`.
  ///   - limits: size limits and timeouts of each connection.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the thread of `NetLoop.shared`, at most once a second.
  ///   - decide: called on the thread of the connection's loop for each client the rules admit.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, spreads: Bool = false,
    limits: WebSocketLimits = WebSocketLimits(), admission: WebSocketAdmission = WebSocketAdmission(),
    refused: @escaping @Sendable (WebSocketAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision
  ) async throws(NetError) -> WebSocketServer {
    let result = await withCheckedContinuation { continuation in
      listen(
        host: host, port: port, identity: identity, spreads: spreads, limits: limits, admission: admission,
        refused: refused, decide: decide
      ) {
        continuation.resume(returning: $0)
      }
    }
    return try result.get()
  }

  /// Starts listening and calls `done` on the thread of `NetLoop.shared`. Needs no task, which would be delayed where others occupy all threads of the
  /// concurrency pool.
  /// - Parameters:
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - spreads: true: the connections are spread over as many loops as the machine has cores; false: all are on `NetLoop.shared`.
  ///   - limits: size limits and timeouts of each connection.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the thread of `NetLoop.shared`, at most once a second.
  ///   - decide: called on the thread of the connection's loop for each client the rules admit.
  ///   - done: called on the thread of `NetLoop.shared`, or at once on the caller's when threads cannot be started.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, spreads: Bool = false,
    limits: WebSocketLimits = WebSocketLimits(), admission: WebSocketAdmission = WebSocketAdmission(),
    refused: @escaping @Sendable (WebSocketAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision,
    done: @escaping @Sendable (Result<WebSocketServer, NetError>) -> Void
  ) {
    ServerListener.listen(
      host: host, port: port, identity: identity, spreads: spreads, admission: admission, refused: refused
    ) { channel, context, control in
      try ServerHandshake.install(on: channel, context, control, limits, decide)
    } done: { result in
      done(result.map(WebSocketServer.init))
    }
  }

  /// Stops listening. Open connections stay open.
  public func stop() { listener.stop() }
}

extension WebSocket {
  /// The server's end of an upgraded channel.
  static func accept(
    _ channel: any Channel, _ limits: WebSocketLimits, _ subprotocol: String?,
    _ receive: (WebSocket) -> @Sendable (WebSocketEvent) -> Void
  ) throws {
    let box = NIOLoopBoundBox<(@Sendable (WebSocketEvent) -> Void)?>(nil, eventLoop: channel.eventLoop)
    let socket = WebSocket(limits, on: .owning(channel.eventLoop)) { event in
      box.value?(event)
      // The receiver probably holds the socket, which holds the receiver.
      if case .closed = event { box.value = nil }
    }
    box.value = receive(socket)
    let peer = channel.remoteAddress?.description ?? "unknown address"
    try socket.attach(
      to: channel, isServer: true, peer: peer, host: peer, subprotocol: subprotocol, hasCodec: true)
  }
}
