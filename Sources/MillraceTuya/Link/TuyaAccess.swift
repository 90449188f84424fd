public import MillraceCrypto
public import MillraceNet

/// Where a connection leads, and as whom it logs in. Each part may come from the parameters of a node or from a token server (`TuyaGrant`).
///
/// Descriptions and mirrors show neither the key nor the password.
public struct TuyaAccess: Sendable, Hashable {
  /// The address, `tls://host:port`, or `tcp://host:port` of a connection without TLS.
  public var address: WebAddress?
  /// The client id: for the dialects v2x the derived one.
  public var client: String?
  /// The local key, from which the keys of a connection are derived.
  public var localKey: SecretKey?
  /// The user name of the dialect v1.
  public var user: String?
  /// The password of the dialect v1.
  public var password: TuyaSecret?
  /// The name and the parameter of the key derivation, which the dialect v1 repeats in its hello.
  public var derivation: Derivation?
  /// When the access expires: a Unix time in seconds, or seconds from now where the number is below 1,000,000,000. Nil: not known, and
  /// never refreshed.
  public var expiry: UInt64?

  /// What the dialect v1 says about the derivation of its keys, as the cloud's configuration gives it.
  public struct Derivation: Sendable, Hashable {
    /// Attribute 18.
    public var algorithm: String
    /// Attribute 19.
    public var vector: String

    /// Creates the pair.
    public init(algorithm: String, vector: String) {
      self.algorithm = algorithm
      self.vector = vector
    }
  }

  /// Creates an access of which nothing is known yet.
  public init() {}

  /// This access, completed by another one where this one says nothing.
  public func completed(by other: TuyaAccess) -> TuyaAccess {
    var whole = self
    whole.address = address ?? other.address
    whole.client = client ?? other.client
    whole.localKey = localKey ?? other.localKey
    whole.user = user ?? other.user
    whole.password = password ?? other.password
    whole.derivation = derivation ?? other.derivation
    whole.expiry = expiry ?? other.expiry
    return whole
  }

  /// Keys are compared in constant time, and not hashed.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(address)
    hasher.combine(client)
    hasher.combine(user)
  }
}

extension TuyaAccess: CustomStringConvertible, CustomReflectable {
  /// The address, and nothing secret.
  public var description: String {
    address.map { "\($0.scheme)://\($0.authority)" } ?? "an access without an address"
  }
  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension WebAddress {
  /// True when what is sent to this address is protected: by TLS, by the cipher of the dialect v1, or because it stays on this machine.
  func isProtected(_ dialect: TuyaDialect) -> Bool { scheme == .tls || isLoopback || dialect == .v1 }
}

/// A text that is never printed, such as a password or a token.
public struct TuyaSecret: Sendable, Hashable {
  /// The text itself.
  public var text: String

  /// Wraps a text.
  public init(_ text: String) { self.text = text }
}

extension TuyaSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The same text for every secret.
  public var description: String { "TuyaSecret(hidden)" }
  /// The same text for every secret.
  public var debugDescription: String { description }
  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
