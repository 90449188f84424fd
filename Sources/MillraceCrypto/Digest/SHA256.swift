/// SHA-256, FIPS 180-4, of bytes that arrive in pieces of any length. The digest of a file is that of `sha256sum`.
///
/// It is not a signature, since anyone can compute it (use `HMAC`), and it is too fast to store passwords with. Memory is constant. Use a
/// value from one thread at a time; a copy continues independently. Allocates: not for `process` of a voice node.
public struct SHA256: Sendable {
  /// The length of a digest.
  public static let digestBytes = 32

  private var hash = OpenSSLHash(.sha256)

  /// Creates a hash to which no bytes have been added.
  public init() {}

  /// Adds bytes.
  public mutating func update(_ bytes: Span<UInt8>) {
    if !isKnownUniquelyReferenced(&hash) { hash = OpenSSLHash(copying: hash) }
    hash.update(bytes)
  }

  /// Returns the digest of all bytes added, `digestBytes` long.
  public consuming func finish() -> [UInt8] {
    isKnownUniquelyReferenced(&hash) ? hash.finish() : OpenSSLHash(copying: hash).finish()
  }

  /// Returns the digest of the given bytes, `digestBytes` long.
  public static func hash(_ bytes: Span<UInt8>) -> [UInt8] {
    let hash = OpenSSLHash(.sha256)
    hash.update(bytes)
    return hash.finish()
  }
}
