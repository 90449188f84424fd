internal import Synchronization

/// A byte stream server: for a backend that connects to the bot, and for doubles of services.
///
/// It listens on this machine by default. Its admission rules (`ByteStreamAdmission`) bound the connections and the pending TLS
/// handshakes; a connection that is refused is closed without a byte.
///
/// When this process is out of file descriptors, new connections wait in the system's queue; accepting is tried again a second later.
@safe
public final class ByteStreamServer: Sendable {
  /// A client that has connected.
  public struct Client: Sendable {
    /// Its address.
    public let peer: String
  }

  /// What the server's code decides about a client.
  public enum Decision: Sendable {
    /// Open the stream. The closure receives the stream and returns the receiver of its events, of which the first is `opened`.
    case accept(@Sendable (ByteStream) -> @Sendable (ByteStreamEvent) -> Void)
    /// Close the connection; the text, for the server's owner, says why.
    case refuse(String)
  }

  private let listener: ServerListener
  /// The port it listens on: the one requested, or the one the system chose for 0.
  public var port: Int { listener.port }
  /// Connections whose TLS handshake is not complete yet. Any thread.
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
  ///   - decide: called on the thread of the connection's loop for each client the rules admit; with TLS, after the handshake.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, spreads: Bool = false,
    limits: ByteStreamLimits = ByteStreamLimits(), admission: ByteStreamAdmission = ByteStreamAdmission(),
    refused: @escaping @Sendable (ByteStreamAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision
  ) async throws(NetError) -> ByteStreamServer {
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

  /// Starts listening and calls `done` on the thread of `NetLoop.shared`. Needs no task, which would be delayed where others occupy all
  /// threads of the concurrency pool.
  /// - Parameters:
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - spreads: true: the connections are spread over as many loops as the machine has cores; false: all are on `NetLoop.shared`.
  ///   - limits: size limits and timeouts of each connection.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the thread of `NetLoop.shared`, at most once a second.
  ///   - decide: called on the thread of the connection's loop for each client the rules admit; with TLS, after the handshake.
  ///   - done: called on the thread of `NetLoop.shared`, or at once on the caller's when the limits are not valid or threads cannot be
  ///     started.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, spreads: Bool = false,
    limits: ByteStreamLimits = ByteStreamLimits(), admission: ByteStreamAdmission = ByteStreamAdmission(),
    refused: @escaping @Sendable (ByteStreamAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Client) -> Decision,
    done: @escaping @Sendable (Result<ByteStreamServer, NetError>) -> Void
  ) {
    if let problem = limits.problem { return done(.failure(problem)) }
    ServerListener.listen(
      host: host, port: port, identity: identity, spreads: spreads, admission: admission.shared,
      refused: refused
    ) { channel, context, control in
      try ByteStreamGate.install(on: channel, context, control, limits, decide)
    } done: { result in
      done(result.map(ByteStreamServer.init))
    }
  }

  /// Stops listening. Open connections stay open.
  public func stop() { listener.stop() }
}
