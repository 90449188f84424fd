internal import CCrypto

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
  /// - Throws: `messageLength` for any other length; `library`.
  public static func sha256(
    _ secret: SecretKey, salt: Span<UInt8>, info: Span<UInt8> = Span(), byteCount: Int
  ) throws(CryptoError) -> SecretKey {
    guard (1...longestKey).contains(byteCount) else {
      throw CryptoError(
        .messageLength,
        "HKDF-SHA256 derives keys of 1 to \(longestKey) bytes, not \(byteCount); pass the length that the cipher takes"
      )
    }
    var result: Int32 = 0
    let key = unsafe SecretKey(count: byteCount) { key in
      result = unsafe derive(key, secret, salt, info)
    }
    guard result == 1 else {
      throw CryptoError(
        .library,
        "HKDF-SHA256 failed: \(OpenSSL.takeReason()); check the configuration of OpenSSL, openssl.cnf")
    }
    return key
  }

  private static func derive(
    _ key: UnsafeMutableBufferPointer<UInt8>, _ secret: SecretKey, _ salt: Span<UInt8>, _ info: Span<UInt8>
  ) -> Int32 {
    guard let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil) else { return 0 }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard unsafe EVP_PKEY_derive_init(context) == 1,
      unsafe EVP_PKEY_CTX_set_hkdf_md(context, OpenSSLDigest.sha256.pointer) == 1,
      unsafe secret.withBytes({ unsafe EVP_PKEY_CTX_set1_hkdf_key(context, $0.baseAddress, Int32($0.count)) })
        == 1,
      // Where there are no bytes there may be no address, which OpenSSL would refuse.
      unsafe salt.isEmpty
        || salt.withUnsafeBufferPointer({
          unsafe EVP_PKEY_CTX_set1_hkdf_salt(context, $0.baseAddress, Int32($0.count)) == 1
        }),
      unsafe info.isEmpty
        || info.withUnsafeBufferPointer({
          unsafe EVP_PKEY_CTX_add1_hkdf_info(context, $0.baseAddress, Int32($0.count)) == 1
        })
    else { return 0 }
    var written = key.count
    return unsafe EVP_PKEY_derive(context, key.baseAddress, &written)
  }
}
