public import MillraceDoubles
public import MillraceNet

/// A local double of the service: it implements the server side of the protocol, plays a scenario, and reports a client's mistakes.
///
/// Replies are spoken by espeak-ng and sent in the format the client asks for. It detects speech by energy alone: what was said is set by
/// the scenario. It shares no code with the client's messages, so that the same mistake cannot be made on both sides.
public final class BailianDouble: Sendable {
  typealias Server = DoubleServer<BailianMembers, BailianTurnMembers>

  /// Path of the service's endpoint, without the query.
  private static let path = "/api-ws/v1/inference"

  /// The address of a double, for clients on this machine.
  static func address(_ port: Int, isSecure: Bool = false) -> String {
    "\(isSecure ? "wss" : "ws")://127.0.0.1:\(port)\(path)"
  }

  private let server: Server

  /// The port it listens on.
  public var port: Int { server.port }
  /// The address for clients on this machine.
  public var address: String { Self.address(port, isSecure: server.isSecure) }
  /// What has happened so far. Any thread.
  public var seen: DoubleReport { server.report }

  /// Starts listening.
  /// - Parameters:
  ///   - scenario: the scenario to play.
  ///   - host: the address to listen on; by default loopback, which no other machine can reach.
  ///   - port: the port; 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - admission: the admission rules; by default no foreign origins, and as many clients as a load test needs.
  ///   - observer: observes the audio.
  ///   - watch: receives each line of the report as it is written, on the network thread.
  public static func listen(
    _ scenario: BailianScenario = BailianScenario(), host: String = "127.0.0.1", port: Int = 0,
    identity: NetIdentity? = nil, admission: ServerAdmission = .loadTest,
    observer: AudioObserver = AudioObserver(),
    watch: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws(NetError) -> BailianDouble {
    let server = Server(scenario, observer: observer, watch: watch)
    try await server.listen(host: host, port: port, identity: identity, admission: admission) {
      client, number in
      guard client.target.prefix(while: { $0 != "?" }) == path else {
        return .refuse(status: 404, "not found")
      }
      if let refusal = server.refusal(of: number, key: client.bearerKey) {
        return .refuse(status: refusal.status, refusal.text)
      }
      return .accept { socket in
        let connection = DoubleConnection(server, socket)
        return { connection.handle($0) }
      }
    }
    return BailianDouble(server)
  }

  private init(_ server: Server) { self.server = server }

  /// Discards what the report lists of a dialogue, and synthesised speech, so that what a client costs can be measured in the same process.
  /// Kept are counts, violations, and what sessions were opened with.
  public func forget() { server.forget() }

  /// Stops listening.
  public func stop() { server.stop() }
}
