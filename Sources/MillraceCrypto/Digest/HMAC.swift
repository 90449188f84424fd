internal import CCrypto

/// Message authentication codes, RFC 2104: signatures that anyone with the key can make and verify.
///
/// Compare the code of a received message with `ConstantTime.areEqual`, never with `==`; where a protocol truncates codes, compare that
/// many bytes. Callable from any thread. Allocates: not for `process` of a voice node.
public enum HMAC {
  /// Returns the code of a message, `SHA256.digestBytes` long.
  public static func sha256(_ message: Span<UInt8>, key: SecretKey) -> [UInt8] {
    code(message, key, .sha256)
  }

  /// Returns the code of a message, `SHA1.digestBytes` long, for services that require it. The collisions of SHA-1 do not break it
  /// (RFC 6194), but use `sha256` for anything new.
  public static func sha1(_ message: Span<UInt8>, key: SecretKey) -> [UInt8] {
    code(message, key, .sha1)
  }

  private static func code(_ message: Span<UInt8>, _ key: SecretKey, _ digest: OpenSSLDigest) -> [UInt8] {
    [UInt8](capacity: Int(EVP_MAX_MD_SIZE)) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, count in
        var written: UInt32 = 0
        let code = unsafe key.withBytes { key in
          unsafe message.withUnsafeBufferPointer { message in
            unsafe CCrypto.HMAC(
              digest.pointer, key.baseAddress, Int32(key.count), message.baseAddress, message.count,
              buffer.baseAddress, &written)
          }
        }
        unsafe precondition(code != nil, "OpenSSL has no memory left")
        count = Int(written)
      }
    }
  }
}
