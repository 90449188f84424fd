/// How many clients a byte stream server admits, and whether it may do without TLS beyond this machine.
///
/// A byte stream has no request: who a client is, the protocol on top has to find out.
public struct ByteStreamAdmission: Sendable, Hashable {
  /// Refusals since the last report.
  public typealias Refusals = ServerAdmission.Refusals

  /// Allows a server that other machines can reach to do without TLS, for example behind a proxy that terminates it.
  public var allowsPlaintext = false
  /// The most open connections.
  public var connections = 1_024
  /// The most half-open connections: TCP is connected, and the TLS handshake not complete.
  public var halfOpen = 256
  /// The most half-open connections from one address; for IPv6, from one /64 network, which is what one customer gets.
  public var halfOpenPerAddress = 32

  /// Creates the default rules.
  public init() {}

  /// Rules for many clients on this machine, for example in a load test.
  public static let loadTest: ByteStreamAdmission = {
    var admission = ByteStreamAdmission()
    let many = ServerAdmission.loadTest
    admission.connections = many.connections
    admission.halfOpen = many.halfOpen
    admission.halfOpenPerAddress = many.halfOpenPerAddress
    return admission
  }()

  /// The rules that all servers of this module share.
  var shared: ServerAdmission {
    var rules = ServerAdmission()
    rules.allowsPlaintext = allowsPlaintext
    rules.connections = connections
    rules.halfOpen = halfOpen
    rules.halfOpenPerAddress = halfOpenPerAddress
    return rules
  }

  /// What is wrong with the rules, or nil. A server with invalid rules does not start.
  public var problem: NetError? { shared.problem }

  /// What is wrong with listening on this address under these rules, or nil.
  public func problem(listeningAt host: String, hasTLS: Bool) -> NetError? {
    shared.problem(listeningAt: host, hasTLS: hasTLS)
  }
}
