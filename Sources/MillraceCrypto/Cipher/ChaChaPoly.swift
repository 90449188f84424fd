/// ChaCha20-Poly1305, RFC 8439: encrypts messages and detects every change to them.
///
/// **Never use a nonce twice with the same key**: both messages can then be read, and others forged. A counter is best. A sealed message is
/// the ciphertext followed by the tag of 16 bytes, as in RFC 5116; the nonce is sent separately. Callable from any thread. Allocates: not
/// for `process` of a voice node.
public enum ChaChaPoly {
  /// The length of a key.
  public static let keyBytes = 32
  /// The length of a nonce.
  public static let nonceBytes = 12
  /// The length of the tag behind the ciphertext.
  public static let tagBytes = 16

  private static let name = "ChaCha20-Poly1305"

  /// Encrypts a message.
  ///
  /// - Parameters:
  ///   - message: what to encrypt, of any length.
  ///   - key: `keyBytes` bytes.
  ///   - nonce: `nonceBytes` bytes that were never used with this key.
  ///   - data: what is authenticated with the message but not encrypted.
  /// - Returns: the ciphertext, as long as the message, and the tag.
  /// - Throws: `keyLength`, `nonceLength`, `library`.
  public static func seal(
    _ message: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, authenticating data: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    let cipher = try cipher(key, nonce)
    do {
      return try cipher.seal(message, key: key, nonce: nonce, data: data, tagBytes: tagBytes)
    } catch {
      throw .library(name, error)
    }
  }

  /// Verifies and decrypts a sealed message.
  ///
  /// - Parameters:
  ///   - sealed: the ciphertext and the tag.
  ///   - key: the sender's key.
  ///   - nonce: the sender's nonce.
  ///   - data: what the sender authenticated with the message.
  /// - Returns: the message.
  /// - Throws: `notAuthentic`, also for messages shorter than a tag; `keyLength`, `nonceLength`, `library`.
  public static func open(
    _ sealed: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, authenticating data: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    let cipher = try cipher(key, nonce)
    guard sealed.count >= tagBytes else { throw .notAuthentic(name) }
    do {
      return try cipher.open(sealed, key: key, nonce: nonce, data: data, tagBytes: tagBytes)
    } catch {
      throw .notAuthentic(name)
    }
  }

  private static func cipher(_ key: SecretKey, _ nonce: Span<UInt8>) throws(CryptoError) -> OpenSSLCipher {
    guard key.byteCount == keyBytes else { throw .key(name, takes: "\(keyBytes)", not: key.byteCount) }
    guard nonce.count == nonceBytes else { throw .nonce(name, takes: "\(nonceBytes)", not: nonce.count) }
    return try OpenSSLCipher.chaCha20Poly1305.checked()
  }
}
