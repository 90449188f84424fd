/// AES in Galois/counter mode, NIST SP 800-38D: encrypts messages and detects every change to them.
///
/// Keys have 16, 24 or 32 bytes. Nonces have 12 bytes, or up to 128 where a service requires it (Tuya takes 16): GCM hashes such a nonce
/// to its initial counter, section 7.1. **Never use a nonce twice with the same key**: both messages can then be read, and others forged.
/// Count, or choose at random and change the key before 2^32 messages (section 8.3).
///
/// A sealed message is the ciphertext followed by the tag of 16 bytes, as in RFC 5116; the nonce is sent separately. Callable from any
/// thread. Allocates: not for `process` of a voice node.
public enum AESGCM {
  /// The length of the tag behind the ciphertext.
  public static let tagBytes = 16
  /// The length of a nonce where the protocol leaves the choice, and the shortest.
  public static let nonceBytes = 12
  /// The length of the longest nonce.
  public static let longestNonce = 128

  private static let name = "AES-GCM"

  /// Encrypts a message.
  ///
  /// - Parameters:
  ///   - message: what to encrypt, of any length.
  ///   - key: 16, 24 or 32 bytes.
  ///   - nonce: `nonceBytes` to `longestNonce` bytes that were never used with this key.
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
    let length = try AESKey(key, name)
    guard (nonceBytes...longestNonce).contains(nonce.count) else {
      throw .nonce(name, takes: "\(nonceBytes) to \(longestNonce)", not: nonce.count)
    }
    let cipher: OpenSSLCipher =
      switch length {
      case .bits128: .aes128GCM
      case .bits192: .aes192GCM
      case .bits256: .aes256GCM
      }
    return try cipher.checked()
  }
}
