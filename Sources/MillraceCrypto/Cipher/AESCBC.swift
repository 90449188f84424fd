/// AES in cipher block chaining mode, NIST SP 800-38A section 6.2, for services that require it.
///
/// It does not detect changes; use `AESGCM` for anything new. Verify the code of a message (`HMAC`) *before* decrypting it: a peer that
/// learns whether forged messages had valid padding can decrypt real ones (Vaudenay, "Security flaws induced by CBC padding", 2002).
/// Choose initialization vectors at random. Callable from any thread. Allocates: not for `process` of a voice node.
public enum AESCBC {
  /// How the last block is filled.
  public enum Padding: Sendable, Hashable, CaseIterable {
    /// PKCS#7: 1 to 16 bytes whose value is their number, RFC 5652 section 6.3.
    case pkcs7
    /// Not at all: messages are whole blocks.
    case none
  }

  /// The length of a block, and of the initialization vector.
  public static let blockBytes = 16

  private static let name = "AES-CBC"

  /// Encrypts a message.
  ///
  /// - Parameters:
  ///   - message: what to encrypt: any length with padding, one block or more without.
  ///   - key: 16, 24 or 32 bytes.
  ///   - iv: the initialization vector, `blockBytes` bytes.
  ///   - padding: how the last block is filled.
  /// - Returns: whole blocks; with padding, 1 to 16 bytes more than the message.
  /// - Throws: `keyLength`, `nonceLength`, `library`; without padding `messageLength` for messages that are not whole
  ///   blocks.
  public static func encrypt(
    _ message: Span<UInt8>, key: SecretKey, iv: Span<UInt8>, padding: Padding = .pkcs7
  ) throws(CryptoError) -> [UInt8] {
    let cipher = try cipher(key, iv)
    if padding == .none { try checkBlocks(message, "messages without padding") }
    do {
      return try cipher.apply(.encrypt, to: message, key: key, iv: iv, pads: padding == .pkcs7)
    } catch {
      throw .library(name, error)
    }
  }

  /// Decrypts a message.
  ///
  /// - Parameters:
  ///   - ciphertext: whole blocks, one or more.
  ///   - key: the sender's key.
  ///   - iv: the sender's initialization vector.
  ///   - padding: how the last block is filled. Padding is checked in constant time, and removed.
  /// - Returns: the message. Without padding a wrong key goes unnoticed.
  /// - Throws: `padding`, `messageLength`, `keyLength`, `nonceLength`, `library`.
  public static func decrypt(
    _ ciphertext: Span<UInt8>, key: SecretKey, iv: Span<UInt8>, padding: Padding = .pkcs7
  ) throws(CryptoError) -> [UInt8] {
    let cipher = try cipher(key, iv)
    try checkBlocks(ciphertext, "ciphertexts")
    let message: [UInt8]
    do {
      message = try cipher.apply(.decrypt, to: ciphertext, key: key, iv: iv)
    } catch {
      throw .library(name, error)
    }
    guard padding == .pkcs7 else { return message }
    // OpenSSL's own check does not take constant time.
    guard let message = try? PKCS7.unpadded(message.span) else { throw .padding(name) }
    return message
  }

  private static func checkBlocks(_ bytes: Span<UInt8>, _ what: String) throws(CryptoError) {
    guard !bytes.isEmpty, bytes.count.isMultiple(of: blockBytes) else {
      throw CryptoError(
        .messageLength,
        "\(name): \(what) are whole blocks of \(blockBytes) bytes, not \(bytes.count) bytes; check how it was made or read"
      )
    }
  }

  private static func cipher(_ key: SecretKey, _ iv: Span<UInt8>) throws(CryptoError) -> OpenSSLCipher {
    let length = try AESKey(key, name)
    guard iv.count == blockBytes else { throw .nonce(name, takes: "\(blockBytes)", not: iv.count) }
    let cipher: OpenSSLCipher =
      switch length {
      case .bits128: .aes128CBC
      case .bits192: .aes192CBC
      case .bits256: .aes256CBC
      }
    return try cipher.checked()
  }
}
