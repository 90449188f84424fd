/// SHA-1, FIPS 180-4, for services whose tokens require it.
///
/// Collisions can be computed (Stevens et al., "The first collision for full SHA-1", 2017), so use `SHA256` for anything new. Callable from
/// any thread. Allocates: not for `process` of a voice node.
public enum SHA1 {
  /// The length of a digest.
  public static let digestBytes = 20

  /// Returns the digest of the given bytes, `digestBytes` long.
  public static func hash(_ bytes: Span<UInt8>) -> [UInt8] {
    let hash = OpenSSLHash(.sha1)
    hash.update(bytes)
    return hash.finish()
  }
}
