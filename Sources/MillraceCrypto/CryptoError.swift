/// Why a cipher or a key derivation refused its input. The text names lengths, never bytes of a key, a nonce or a message.
public struct CryptoError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What the caller can do about it. Tests and callers compare this, not the text.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The key has a length that the cipher does not take.
    case keyLength
    /// The nonce or initialization vector has a length that the cipher does not take.
    case nonceLength
    /// The message has a length that the cipher does not take, or a key was to be derived of a length that HKDF does not give.
    case messageLength
    /// The message was changed on the way, or key, nonce or associated data are not those of the sender. Discard it.
    case notAuthentic
    /// The decrypted message does not end in valid padding: it was changed on the way, or key or nonce are not those of the sender.
    case padding
    /// The cryptographic library failed although key and nonce have the right lengths: a message of more than 64 GiB, or a cipher that the
    /// machine's configuration of OpenSSL leaves out.
    case library
  }

  /// What the caller can do about it.
  public var kind: Kind
  /// The message, in lower case, with its cure.
  public var text: String

  /// Creates an error. The text must not hold any byte of a key, a nonce or a message.
  public init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }

  public var description: String { text }
}

extension CryptoError {
  static func key(_ cipher: String, takes lengths: String, not length: Int) -> CryptoError {
    CryptoError(
      .keyLength, "\(cipher) takes a key of \(lengths) bytes, not \(length); check how the key was decoded")
  }

  static func nonce(_ cipher: String, takes lengths: String, not length: Int) -> CryptoError {
    CryptoError(
      .nonceLength,
      "\(cipher) takes a nonce of \(lengths) bytes, not \(length); check how it was made or read")
  }

  static func notAuthentic(_ cipher: String) -> CryptoError {
    CryptoError(
      .notAuthentic,
      "\(cipher): the message is not authentic; discard it, and check key, nonce and associated data")
  }

  static func padding(_ cipher: String) -> CryptoError {
    CryptoError(
      .padding,
      "\(cipher): the message does not end in valid padding; discard it, and check key and nonce")
  }

  static func library(_ cipher: String, _ failure: OpenSSLFailure) -> CryptoError {
    CryptoError(.library, "\(cipher) failed: \(failure.reason); check the length of the message")
  }
}
