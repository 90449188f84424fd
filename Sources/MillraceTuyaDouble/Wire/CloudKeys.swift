internal import MillraceCrypto

/// The dialect of a connection, as its first frame shows it.
enum CloudDialect: Sendable, Hashable {
  /// Every frame has its own cipher: 4 AES-GCM, 3 AES-CBC, 2 ChaCha20; 0: not known before the first frame with a cipher.
  case v1(security: Int)
  /// In clear text, inside TLS: signature level 0 without, 1 with 20 bytes, 2 with 32.
  case v21(level: Int)

  var isV1: Bool { if case .v1 = self { true } else { false } }

  /// Bytes of the signature behind a frame.
  var trailer: Int {
    switch self {
    case .v1: 32
    case .v21(let level): level == 0 ? 0 : level == 1 ? 20 : 32
    }
  }
}

/// The keys of a connection, derived from the local key and the random values of its first frame.
struct CloudKeys: Sendable {
  var dialect: CloudDialect
  let crypt: SecretKey
  let sign: SecretKey

  /// Bytes at each end of a long frame that are signed: the middle is not.
  private static let signed = 32

  /// HKDF-SHA256 with the local key as ASCII, the random value as salt and no information.
  init(_ dialect: CloudDialect, localKey: String, cryptRandom: [UInt8], signRandom: [UInt8]) throws(WireFault)
  {
    self.dialect = dialect
    do throws(CryptoError) {
      let secret = SecretKey(utf8: localKey)
      crypt = try HKDF.sha256(secret, salt: cryptRandom.span, byteCount: 32)
      sign = try HKDF.sha256(secret, salt: signRandom.span, byteCount: 32)
    } catch { throw WireFault(.suite, "no keys can be derived: \(error)") }
  }

  /// The signature of a frame.
  func signature(of frame: [UInt8]) -> [UInt8] {
    let ends = Self.signed
    let sample = frame.count <= 2 * ends ? frame : Array(frame.prefix(ends) + frame.suffix(ends))
    return Array(HMAC.sha256(sample.span, key: sign).prefix(dialect.trailer))
  }
}

/// What is wrong with bytes on the wire: the double closes the connection.
struct WireFault: Error, Sendable, Hashable {
  /// The kind, which is the name of the violation.
  enum Kind: String, Sendable, Hashable, CaseIterable {
    case badVersion, shortFrame, largeFrame, wrongSignature, notDecrypted, badPadding, badSecurityLevel, noIV
    case wrongSequence, fragmentOrder, attributeBlock, attributeEntry, attributeSize, attributeKind
    case payloadLength, varint, mediaHead, mediaLength, eventHead, channelLists, badParameters, badUserData
    case suite, emptyPacket, noHello
  }

  var kind: Kind
  /// A description with numbers, without what was sent.
  var text: String

  init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }
}

/// Which end of the connection wrote a frame: ChaCha20 frames of v1 are padded differently.
enum WireSide: Sendable, Hashable {
  case client, cloud
}
