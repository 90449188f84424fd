/// The digest of a certificate: `a=fingerprint`. Source: RFC 8122 section 5.
public struct CertificateFingerprint: Sendable, Hashable {
  /// The hash function. MD2 and MD5 are not among them: RFC 8122 forbids them.
  public enum Algorithm: String, Sendable, Hashable, CaseIterable {
    /// 20 bytes. Weak: read, and never accepted as the only one.
    case sha1 = "sha-1"
    /// 28 bytes.
    case sha224 = "sha-224"
    /// 32 bytes. What everybody sends.
    case sha256 = "sha-256"
    /// 48 bytes.
    case sha384 = "sha-384"
    /// 64 bytes.
    case sha512 = "sha-512"

    /// Bytes of a digest.
    public var bytes: Int {
      switch self {
      case .sha1: 20
      case .sha224: 28
      case .sha256: 32
      case .sha384: 48
      case .sha512: 64
      }
    }
  }

  /// The hash function.
  public var algorithm: Algorithm
  /// The digest of the certificate in DER.
  public var digest: [UInt8]

  /// Creates a fingerprint; nil: the digest has another length than its algorithm.
  public init?(_ algorithm: Algorithm = .sha256, digest: [UInt8]) {
    guard digest.count == algorithm.bytes else { return nil }
    self.algorithm = algorithm
    self.digest = digest
  }

  /// Reads `sha-256 AB:CD:…`, in capitals or not; nil: an unknown algorithm, or no digest of its length.
  public init?(parsing value: String) {
    var words = SDPWords(value[...])
    guard let name = words.next(), let algorithm = Self.algorithm(name), let digits = words.next(),
      words.next() == nil
    else { return nil }
    let bytes = digits.parts(at: ":")
    guard bytes.count == algorithm.bytes else { return nil }
    let digest = bytes.compactMap { SDPHex.byte($0) }
    self.init(algorithm, digest: digest)
  }

  static func algorithm(_ name: Substring) -> Algorithm? {
    Algorithm.allCases.first { name.isEqualIgnoringCase($0.rawValue) }
  }

  /// For example `sha-256 AB:CD:…`.
  public var text: String {
    "\(algorithm.rawValue) \(digest.map { SDPHex.text($0) }.joined(separator: ":"))"
  }

  /// True where SHA-256 or a longer one made it.
  public var isStrong: Bool { algorithm.bytes >= Algorithm.sha256.bytes }

  /// Compares with the digest that this side has made of the peer's certificate. The time depends on the length alone.
  public func matches(_ other: Span<UInt8>) -> Bool {
    guard other.count == digest.count, !digest.isEmpty else { return false }
    var difference: UInt8 = 0
    for index in digest.indices { difference |= digest[index] ^ other[index] }
    return difference == 0
  }

  /// Compares with a fingerprint of the same algorithm. The time depends on the length alone.
  public func matches(_ other: CertificateFingerprint) -> Bool {
    algorithm == other.algorithm && matches(other.digest.span)
  }
}
