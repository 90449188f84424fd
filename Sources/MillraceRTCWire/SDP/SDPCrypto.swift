internal import MillraceJSON

/// A key of SRTP in the description: `a=crypto`. Source: RFC 4568. Only for signalling that is secret itself.
public struct SDPCrypto: Sendable, Hashable {
  /// A suite, and what its keys are.
  public enum Suite: String, Sendable, Hashable, CaseIterable {
    /// AES-128 in counter mode, a tag of 80 bits. RFC 4568 section 6.2.1.
    case aesCM128SHA180 = "AES_CM_128_HMAC_SHA1_80"
    /// AES-128 in counter mode, a tag of 32 bits for RTP. RFC 4568 section 6.2.2.
    case aesCM128SHA132 = "AES_CM_128_HMAC_SHA1_32"
    /// AES-256 in counter mode, a tag of 80 bits. RFC 6188 section 4.
    case aesCM256SHA180 = "AES_256_CM_HMAC_SHA1_80"
    /// AES-256 in counter mode, a tag of 32 bits for RTP. RFC 6188 section 4.
    case aesCM256SHA132 = "AES_256_CM_HMAC_SHA1_32"
    /// AES-128 in Galois/counter mode. RFC 7714 section 14.2.
    case aesGCM128 = "AEAD_AES_128_GCM"
    /// AES-256 in Galois/counter mode. RFC 7714 section 14.2.
    case aesGCM256 = "AEAD_AES_256_GCM"

    /// Bytes of the key and the salt behind it.
    public var keyBytes: Int {
      switch self {
      case .aesCM128SHA180, .aesCM128SHA132: 16 + 14
      case .aesCM256SHA180, .aesCM256SHA132: 32 + 14
      case .aesGCM128: 16 + 12
      case .aesGCM256: 32 + 12
      }
    }
  }

  /// The number by which an answer chooses it.
  public var tag: UInt32
  /// The suite, as it stands in the text.
  public var suiteName: String
  /// `inline:` and key and salt in Base64, with `|` and lifetime or MKI behind; several with semicolons between.
  public var keyParameters: String
  /// What follows.
  public var sessionParameters: String?

  /// Creates an attribute with one key; nil: key and salt have another length than those of the suite.
  public init?(tag: UInt32 = 1, _ suite: Suite = .aesCM128SHA180, key: [UInt8]) {
    guard key.count == suite.keyBytes else { return nil }
    self.tag = tag
    suiteName = suite.rawValue
    keyParameters = "inline:\(Base64.encode(key))"
  }

  init?(parsing value: Substring) {
    var words = SDPWords(value)
    guard let tag = words.number(999_999_999), let suite = words.next(), let key = words.next() else {
      return nil
    }
    self.tag = UInt32(tag)
    (suiteName, keyParameters) = (String(suite), String(key))
    let rest = words.remainder
    if !rest.isEmpty { sessionParameters = String(rest) }
  }

  /// The suite; nil: one that is not known.
  public var suite: Suite? { Suite(rawValue: suiteName) }

  /// Key and salt of the first key; nil: an unknown suite, or no key of its length.
  public var key: [UInt8]? {
    let first = keyParameters[...].parts(at: ";")[0]
    let (method, rest) = first.halves(at: ":")
    guard let suite, method.isEqualIgnoringCase("inline"), let rest,
      let bytes = Self.bytes(rest.halves(at: "|").0), bytes.count == suite.keyBytes
    else { return nil }
    return bytes
  }

  /// The bytes of a key. Some write it without padding.
  private static func bytes(_ text: Substring) -> [UInt8]? {
    let digits = text.prefix { $0 != "=" }
    return Base64.decode(digits + String(repeating: "=", count: (4 - digits.utf8.count % 4) % 4))
  }

  var text: String { "\(tag) \(suiteName) \(keyParameters)\(sessionParameters.map { " \($0)" } ?? "")" }
}
