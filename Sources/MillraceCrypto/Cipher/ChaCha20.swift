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
  private static let blockBytes = 64

  /// Encrypts or decrypts a message, which is the same operation.
  ///
  /// - Parameters:
  ///   - message: the message or its ciphertext, of any length.
  ///   - key: `keyBytes` bytes.
  ///   - nonce: `nonceBytes` bytes that were never used with this key.
  ///   - counter: the number of the first block of 64 bytes, 0 or 1 in most protocols.
  /// - Returns: as many bytes as the message has.
  /// - Throws: `keyLength`, `nonceLength`, `library`; `messageLength` for a message that would need a block with a number above 2^32 - 1.
  public static func apply(
    to message: Span<UInt8>, key: SecretKey, nonce: Span<UInt8>, counter: UInt32
  ) throws(CryptoError) -> [UInt8] {
    guard key.byteCount == keyBytes else { throw .key(name, takes: "\(keyBytes)", not: key.byteCount) }
    guard nonce.count == nonceBytes else { throw .nonce(name, takes: "\(nonceBytes)", not: nonce.count) }
    let cipher = try OpenSSLCipher.chaCha20.checked()
    let blocks = (message.count + blockBytes - 1) / blockBytes
    guard blocks <= Int(UInt32.max) + 1 - Int(counter) else {
      throw CryptoError(
        .messageLength,
        "\(name): there are no \(blocks) blocks left behind number \(counter); start lower, or use another nonce"
      )
    }
    // OpenSSL takes the number of the block and the nonce as one.
    let iv = [UInt8](capacity: MemoryLayout<UInt32>.size + nonceBytes) { output in
      for shift in stride(from: 0, to: UInt32(UInt32.bitWidth), by: 8) {
        output.append(UInt8(truncatingIfNeeded: counter >> shift))
      }
      for index in nonce.indices { output.append(nonce[index]) }
    }
    do {
      return try cipher.apply(.encrypt, to: message, key: key, iv: iv.span)
    } catch {
      throw .library(name, error)
    }
  }
}
