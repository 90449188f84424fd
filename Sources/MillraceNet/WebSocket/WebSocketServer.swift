/// A WebSocket server: for a backend that connects to the bot, and for doubles of services.
///
/// An `HTTPServer` on the network thread that only opens WebSockets: any other request gets status 426. It listens on this machine by
/// default, and refuses what the admission rules do not admit as that server does. When this process is out of file descriptors, new
/// connections wait in the system's queue; accepting is tried again a second later.
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
      HTTPText.header(header, in: headers)
    }
  }

  /// What the server's code decides about a client.
  public enum Decision: Sendable {
    /// Open the WebSocket. The closure receives the socket and returns the receiver of its events.
    case accept(protocol: String? = nil, @Sendable (WebSocket) -> @Sendable (WebSocketEvent) -> Void)
    /// Answer with this status and text.
    case refuse(status: Int, String)
  }

  private let server: HTTPServer
  /// The port it listens on: the one requested, or the one the system chose for 0.
  public var port: Int { server.port }
  /// Connections whose handshake is not answered yet. Any thread.
  public var halfOpen: Int { server.halfOpen }
  /// Open connections. Any thread.
  public var connections: Int { server.connections }
  /// Connections refused so far. Any thread.
  public var refused: Int { server.refused }

  private init(_ server: HTTPServer) { self.server = server }

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
    limits: WebSocketLimits = WebSocketLimits(), admission: ServerAdmission = ServerAdmission(),
    refused: @escaping @Sendable (ServerAdmission.Refusals) -> Void = { _ in },
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
    limits: WebSocketLimits = WebSocketLimits(), admission: ServerAdmission = ServerAdmission(),
    refused: @escaping @Sendable (ServerAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision,
    done: @escaping @Sendable (Result<WebSocketServer, NetError>) -> Void
  ) {
    var all = HTTPServer.Limits()
    // The admission rules limit them: a client beyond their limits is refused, and does not wait.
    all.connections = .max
    all.patience = limits.open
    all.body = admission.maxRequestBytes
    all.webSocket = limits
    HTTPServer.listen(
      host: host, port: port, identity: identity, on: .shared, limits: all, admission: admission,
      refused: refused, decide: { Self.decide($0, decide) }
    ) { done($0.map { WebSocketServer($0) }) }
  }

  private static func decide(_ request: HTTPServer.Request, _ decide: (Client) -> Decision)
    -> HTTPServer.Decision
  {
    guard request.asksForWebSocket else { return .answer(.webSocketOnly) }
    switch decide(Client(target: request.target, headers: request.headers, peer: request.peer)) {
    case .accept(let subprotocol, let begin): return .webSocket(protocol: subprotocol, begin)
    case .refuse(let status, let text): return .refuse(status: status, text)
    }
  }

  /// Stops listening. Open connections stay open.
  public func stop() { server.stopListening() }
}
