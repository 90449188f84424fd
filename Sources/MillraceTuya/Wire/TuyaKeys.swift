public import MillraceCrypto

/// The keys of a connection.
///
/// They are derived from the local key of the client with HKDF-SHA256 (RFC 5869), without info: the random of a hello is the salt. They are
/// never printed: `SecretKey` hides them.
public struct TuyaKeys: Sendable, Equatable {
  /// Encrypts frames of the dialect v1.
  public var crypt: SecretKey
  /// Signs frames.
  public var sign: SecretKey
  /// Encrypts pictures of the dialect v22, 16 bytes; nil: there is none.
  public var media: SecretKey?

  /// Bytes of a derived key.
  public static let bytes = 32
  /// Bytes of the random of a hello.
  public static let randomBytes = 32

  /// Creates keys that are known.
  public init(crypt: SecretKey, sign: SecretKey, media: SecretKey? = nil) {
    self.crypt = crypt
    self.sign = sign
    self.media = media
  }

  /// Derives the keys of the dialect v1, which has a random for each.
  /// - Parameters:
  ///   - localKey: of the client, its characters as they are.
  ///   - cryptRandom: attribute 13 of the hello.
  ///   - signRandom: attribute 14 of the hello.
  public init(localKey: SecretKey, cryptRandom: [UInt8], signRandom: [UInt8]) {
    self.init(crypt: Self.derive(localKey, cryptRandom), sign: Self.derive(localKey, signRandom))
  }

  /// Derives the keys of the dialects v2x, which have one random and one key.
  /// - Parameters:
  ///   - localKey: of the client.
  ///   - random: in attribute 10 of the hello.
  ///   - media: of the dialect v22.
  public init(localKey: SecretKey, random: [UInt8], media: SecretKey? = nil) {
    let key = Self.derive(localKey, random)
    self.init(crypt: key, sign: key, media: media)
  }

  private static func derive(_ localKey: SecretKey, _ random: [UInt8]) -> SecretKey {
    let salt = random.span
    do throws(CryptoError) { return try HKDF.sha256(localKey, salt: salt, byteCount: bytes) } catch {
      preconditionFailure("\(bytes) bytes can be derived: \(error)")
    }
  }
}
