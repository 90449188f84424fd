internal import Crypto

/// Message authentication codes, RFC 2104: signatures that anyone with the key can make and verify.
///
/// Compare the code of a received message with `ConstantTime.areEqual`, never with `==`; where a protocol truncates codes, compare that
/// many bytes. Callable from any thread. Allocates: not for `process` of a voice node.
public enum HMAC {
  /// Returns the code of a message, `SHA256.digestBytes` long.
  public static func sha256(_ message: Span<UInt8>, key: SecretKey) -> [UInt8] {
    code(message, key, Crypto.SHA256.self)
  }

  /// Returns the code of a message, `SHA1.digestBytes` long, for services that require it. The collisions of SHA-1 do not break it
  /// (RFC 6194), but use `sha256` for anything new.
  public static func sha1(_ message: Span<UInt8>, key: SecretKey) -> [UInt8] {
    code(message, key, Crypto.Insecure.SHA1.self)
  }

  private static func code<Hash: Crypto.HashFunction>(
    _ message: Span<UInt8>, _ key: SecretKey, _: Hash.Type
  ) -> [UInt8] {
    unsafe message.bytes.withUnsafeBytes {
      unsafe Array(Crypto.HMAC<Hash>.authenticationCode(for: $0, using: key.symmetric))
    }
  }
}
