/// Why a connection could not be made, or ended. Its text names host and port, never a path, a header or a credential.
public struct NetProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What stood in the way.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The address is no address.
    case address
    /// No such host.
    case lookup
    /// Nobody answers at the port, or the way there is broken.
    case connect
    /// It took too long.
    case timeout
    /// The certificate does not verify, or both sides have no cipher in common.
    case tls
    /// The proxy refused.
    case proxy
    /// The other side is there, and answers something else than it should. `status` is the one of HTTP.
    case refused
    /// What came is no HTTP or no WebSocket.
    case garbled
    /// A message is larger than allowed.
    case tooLarge
    /// Nothing came for too long, not even an answer to a ping.
    case silent
    /// The connection ended without a good-bye.
    case lost
    /// This side did not want it any more.
    case cancelled
  }

  /// What stood in the way.
  public var kind: Kind
  /// The status of HTTP, where there was one.
  public var status: Int?
  /// In words, lower case.
  public var text: String

  /// A problem in words without a path, a header or a credential.
  public init(_ kind: Kind, status: Int? = nil, _ text: String) {
    self.kind = kind
    self.status = status
    self.text = text
  }

  public var description: String { text }
}
