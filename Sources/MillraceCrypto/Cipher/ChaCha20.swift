internal import Crypto
internal import CryptoExtras

/// The stream cipher ChaCha20 alone, RFC 8439 section 2.4, for protocols that authenticate by other means.
///
/// A changed bit of the ciphertext is the same changed bit of the message, and nothing detects it: use `ChaChaPoly` for anything new.
/// **Never use a nonce twice with the same key**: both messages can then be read. Callable from any thread. Allocates: not for `process` of
/// a voice node.
public enum ChaCha20 {
  /// The length of a key.
  public static let keyBytes = 32
  /// The length of a nonce.
  public static let nonceBytes = 12

  private static let name = "ChaCha20"

  /// Encrypts or decrypts a message, which is the same operation.
  ///
  /// - Parameters:
  ///   - message: the message or its ciphertext, of any length.
  ///   - key: `keyBytes` bytes.
  ///   - nonce: `nonceBytes` bytes that were never used with this key.
  ///   - counter: the number of the first block of 64 bytes, 0 or 1 in most protocols.
  /// - Returns: as many bytes as the message has.
  /// - Throws: `keyLength`, `nonceLength`.
  public static func apply(
    to message: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, counter: UInt32
  ) throws(CryptoError) -> [UInt8] {
    guard key.byteCount == keyBytes else { throw .key(name, takes: "\(keyBytes)", not: key.byteCount) }
    guard nonce.count == nonceBytes else { throw .nonce(name, takes: "\(nonceBytes)", not: nonce.count) }
    do {
      let nonce = unsafe try nonce.bytes.withUnsafeBytes {
        unsafe try Insecure.ChaCha20CTR.Nonce(data: $0)
      }
      let counter = try Insecure.ChaCha20CTR.Counter(offset: counter)
      return unsafe try message.bytes.withUnsafeBytes {
        unsafe Array(
          try Insecure.ChaCha20CTR.encrypt($0, using: key.symmetric, counter: counter, nonce: nonce))
      }
    } catch {
      throw .library(name, error)
    }
  }
}
