internal import Crypto

/// Keys derived from another secret, RFC 5869.
///
/// HKDF does not make a weak secret strong: it is no way to derive keys from passwords. Callable from any thread. Allocates.
public enum HKDF {
  /// The longest key that `sha256` derives, in bytes: 255 digests, RFC 5869 section 2.3.
  public static let longestKey = 255 * SHA256.digestBytes

  /// Derives a key with SHA-256: extract, then expand.
  ///
  /// - Parameters:
  ///   - secret: what the key is derived from.
  ///   - salt: random bytes, which need not be secret. None is the same as 32 zeros.
  ///   - info: what the key is for, so that several keys can be derived from one secret.
  ///   - byteCount: the length of the key, 1 to `longestKey`.
  /// - Throws: `messageLength` for any other length.
  public static func sha256(
    _ secret: SecretKey, salt: Span<UInt8>, info: Span<UInt8> = Span(), byteCount: Int
  ) throws(CryptoError) -> SecretKey {
    guard (1...longestKey).contains(byteCount) else {
      throw CryptoError(
        .messageLength,
        "HKDF-SHA256 derives keys of 1 to \(longestKey) bytes, not \(byteCount); pass the length that the cipher takes"
      )
    }
    return unsafe salt.bytes.withUnsafeBytes { salt in
      unsafe info.bytes.withUnsafeBytes { info in
        unsafe SecretKey(
          Crypto.HKDF<Crypto.SHA256>.deriveKey(
            inputKeyMaterial: secret.symmetric, salt: salt, info: info, outputByteCount: byteCount))
      }
    }
  }
}
