public import MillraceDoubles
internal import MillraceNet

/// A local double of the AI stream service: the cloud's end of the stream in both dialects, and a token server. It plays a scenario, and
/// reports a client's mistakes.
///
/// The dialect of a client is that of its first frame: v21 with any signature level, or v1 with any of its ciphers. It listens over TLS
/// with a certificate of its own, or over TCP where the scenario is `plain`. It detects speech by energy alone: what was said is set by the
/// scenario. It shares no code with the client's wire, so that the same mistake cannot be made on both sides.
public final class TuyaDouble: Sendable {
  typealias Server = DoubleServer<TuyaMembers, TuyaTurnMembers>

  /// The agent token that is good without the token server, unless the scenario has `keys`.
  public static let token = "token-of-the-double"

  private let server: Server
  private let desk: TokenDesk
  private let tokens: TokenServer
  /// Its files are there as long as the object; nil: the double was started with a certificate, or is plain.
  private let certificate: DoubleCertificate?

  /// The port it listens on.
  public var port: Int { server.port }
  /// The address for clients on this machine.
  public var address: String { Self.address(port, isSecure: server.isSecure) }
  /// The authority that a client has to trust; nil: it is plain, or only who started the double knows which has signed its certificate.
  public var roots: String? { certificate?.identity.certificate }
  /// The address of the token server.
  public var provider: String { tokens.address }
  /// The agent token that is good without the token server.
  public var agentToken: String { server.scenario.keys.first ?? Self.token }
  /// The client id that is accepted.
  public var client: String { server.scenario.client }
  /// The local key of that client.
  public var localKey: String { server.scenario.localKey }
  /// The name with which that client logs in, in the dialect v1.
  public var user: String { server.scenario.user }
  /// The password of that name.
  public var password: String { server.scenario.password }
  /// What has happened so far. Any thread.
  public var seen: DoubleReport { server.report }

  static func address(_ port: Int, isSecure: Bool = true) -> String {
    "\(isSecure ? "tls" : "tcp")://127.0.0.1:\(port)"
  }

  /// Starts listening on this machine.
  /// - Throws: why it cannot listen.
  public static func listen(
    _ scenario: TuyaScenario = TuyaScenario(), _ options: DoubleOptions = DoubleOptions()
  ) async throws(DoubleProblem) -> TuyaDouble {
    let server = Server(scenario, observer: options.observer, watch: options.watch)
    let desk = TokenDesk(server)
    let isOwn = options.identity == nil && !scenario.isPlain
    let certificate = try isOwn ? DoubleCertificate() : nil
    try await server.listenForStreams(options, identity: certificate?.identity) { stream, number in
      let connection = DoubleConnection(server, desk, stream, number: number)
      return { connection.handle($0) }
    }
    do throws(DoubleProblem) {
      let tokens = try await TokenServer.listen(desk)
      return TuyaDouble(server, desk, tokens, certificate)
    } catch {
      server.stop()
      throw error
    }
  }

  private init(_ server: Server, _ desk: TokenDesk, _ tokens: TokenServer, _ certificate: DoubleCertificate?)
  {
    self.server = server
    self.desk = desk
    self.tokens = tokens
    self.certificate = certificate
  }

  /// Discards what the report lists of a dialogue.
  public func forget() { server.forget() }

  /// Stops listening.
  public func stop() {
    server.stop()
    tokens.stop()
  }
}
