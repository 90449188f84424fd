/// Why a connection could not be opened, or how it failed. The text names host and port, never a path, a header or a credential. A cure,
/// where there is one, follows a semicolon.
public struct NetError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure. Tests and callers compare this, not the text.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The address or another part of the request is not valid.
    case address
    /// Host not found.
    case hostNotFound
    /// Connection refused, or the host cannot be reached.
    case connect
    /// Timed out.
    case timeout
    /// TLS failed: the certificate is not trusted, or both sides have no cipher in common.
    case tls
    /// The proxy refused the tunnel.
    case proxy
    /// The server answered with another HTTP status than expected; see `status`.
    case refused
    /// The peer violated HTTP or the WebSocket protocol.
    case protocolError
    /// A message is larger than allowed.
    case tooLarge
    /// The peer sent nothing for too long, not even an answer to a ping.
    case unresponsive
    /// The connection ended without a close frame.
    case lost
    /// This side cancelled the connection.
    case cancelled
  }

  /// Why a server cannot listen, where trying again at once changes nothing.
  package enum ListeningObstacle: Sendable, Hashable, CaseIterable {
    /// Somebody listens there.
    case inUse
    /// This machine has no such address.
    case notAvailable
    /// Not with the privileges of this process.
    case notPermitted
  }

  /// The kind of failure.
  public var kind: Kind
  /// The HTTP status, where there was one.
  public var status: Int?
  /// The message, in lower case.
  public var text: String
  /// For a server that cannot listen; nil: it is another failure.
  package var obstacle: ListeningObstacle?

  /// Creates an error. The text must not hold a path, a header or a credential.
  public init(_ kind: Kind, status: Int? = nil, _ text: String) {
    self.kind = kind
    self.status = status
    self.text = text
  }

  public var description: String { text }

  /// The text says what to do, and not only what is wrong.
  package var hasCure: Bool { text.contains("; ") }
}
