internal import Crypto

/// AES in Galois/counter mode, NIST SP 800-38D: encrypts messages and detects every change to them.
///
/// Keys have 16, 24 or 32 bytes. Nonces have 12 bytes, or more where a service requires it (Tuya takes 16): GCM hashes such a nonce to its
/// initial counter, section 7.1. **Never use a nonce twice with the same key**: both messages can then be read, and others forged. Count,
/// or choose at random and change the key before 2^32 messages (section 8.3).
///
/// A sealed message is the ciphertext followed by the tag of 16 bytes, as in RFC 5116; the nonce is sent separately. Callable from any
/// thread. Allocates: not for `process` of a voice node.
public enum AESGCM {
  /// The length of the tag behind the ciphertext.
  public static let tagBytes = 16
  /// The length of a nonce where the protocol leaves the choice, and the shortest.
  public static let nonceBytes = 12

  private static let name = "AES-GCM"

  /// Encrypts a message.
  ///
  /// - Parameters:
  ///   - message: what to encrypt, of any length.
  ///   - key: 16, 24 or 32 bytes.
  ///   - nonce: at least `nonceBytes` bytes that were never used with this key.
  ///   - data: what is authenticated with the message but not encrypted.
  /// - Returns: the ciphertext, as long as the message, and the tag.
  /// - Throws: `keyLength`, `nonceLength`.
  public static func seal(
    _ message: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, authenticating data: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    let nonce = try checked(nonce, key)
    do {
      let box = unsafe try message.bytes.withUnsafeBytes { message in
        unsafe try data.bytes.withUnsafeBytes { data in
          unsafe try AES.GCM.seal(message, using: key.symmetric, nonce: nonce, authenticating: data)
        }
      }
      return Array(box.ciphertext) + box.tag
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
  /// - Throws: `notAuthentic`, also for messages shorter than a tag; `keyLength`, `nonceLength`.
  public static func open(
    _ sealed: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, authenticating data: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    let nonce = try checked(nonce, key)
    guard sealed.count >= tagBytes else { throw .notAuthentic(name) }
    do {
      return unsafe try sealed.bytes.withUnsafeBytes { sealed in
        unsafe try data.bytes.withUnsafeBytes { data in
          let box = unsafe try AES.GCM.SealedBox(
            nonce: nonce, ciphertext: sealed.dropLast(tagBytes), tag: sealed.suffix(tagBytes))
          return unsafe Array(try AES.GCM.open(box, using: key.symmetric, authenticating: data))
        }
      }
    } catch {
      throw .notAuthentic(name)
    }
  }

  private static func checked(_ nonce: Span<UInt8>, _ key: SecretKey) throws(CryptoError) -> AES.GCM.Nonce {
    try AESKey.check(key, name)
    guard nonce.count >= nonceBytes else {
      throw .nonce(name, takes: "\(nonceBytes) or more", not: nonce.count)
    }
    do {
      return unsafe try nonce.bytes.withUnsafeBytes { unsafe try AES.GCM.Nonce(data: $0) }
    } catch {
      throw .library(name, error)
    }
  }
}
