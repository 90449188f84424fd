internal import MillraceCrypto

/// How packets become frames on one connection.
public struct TuyaFraming: Sendable {
  /// The dialect.
  public var dialect: TuyaDialect
  /// The cipher of v1.
  public var security = TuyaSecurity.sl4
  /// The signature of v21. v22 has none.
  public var signLevel = TuyaSignLevel.full
  /// The keys of the connection.
  public var keys: TuyaKeys
  /// The largest body of a frame that is accepted, in bytes; what belongs to its protection comes on top.
  public var limit = 65_535
  /// The largest piece of a packet in a frame that is sent, in bytes. Source: 4,096 in the vendor's client for TCP.
  public var largestSent = 4_096
  /// The largest packet that is put together from fragments, in bytes.
  public var mostPacketBytes = 1 << 20

  /// Creates a framing with the vendor's usual numbers.
  public init(_ dialect: TuyaDialect, keys: TuyaKeys) {
    self.dialect = dialect
    self.keys = keys
  }

  var form: TuyaPacketForm { TuyaPacketForm(dialect: dialect, media: keys.media) }

  /// The largest piece of a packet that goes into a frame: what is wanted, as far as the length of v2x has room for it.
  var largestPiece: Int {
    max(1, dialect == .v1 ? largestSent : min(largestSent, Int(UInt16.max) - trailerBytes))
  }

  /// Bytes of the signature behind a frame.
  var trailerBytes: Int {
    switch dialect {
    case .v1: ShortHMAC.codeBytes
    case .v21: signLevel.trailerBytes
    case .v22: 0
    }
  }

  /// What protection may add to a body: padding, the tag of GCM, the signature.
  var overhead: Int { dialect == .v1 ? PKCS7.blockBytes + AESGCM.tagBytes + trailerBytes : trailerBytes }

  /// The bytes of the largest frame that is accepted, from its length on.
  var largestLength: Int { min(limit + overhead, dialect == .v1 ? Int(Int32.max) : Int(UInt16.max)) }
}

/// Where a frame lies in its packet: two bits of its head.
enum TuyaFragment: UInt8 {
  case whole = 0
  case first = 1
  case middle = 2
  case last = 3
}

/// The parts of a frame's head.
enum TuyaFrameHead {
  /// Bytes in front of the initialization vector, and in v2x of the body.
  static let bytes = 5
  static let ivBytes = 16
  /// Bytes of the length in v1.
  static let lengthBytes = 4
  /// Bytes at either end of a frame that are signed where it is longer than both.
  static let sampleBytes = 32

  /// The first byte of the dialects v2x: 2 for TCP, and the version.
  static func mark(_ dialect: TuyaDialect) -> UInt8 {
    switch dialect {
    case .v1: 0x01
    case .v21: 0x22
    case .v22: 0x23
    }
  }

  /// The number that follows: from 65535 on it begins at 1.
  static func next(_ sequence: UInt16) -> UInt16 { sequence == .max ? 1 : sequence + 1 }

  /// Signs a frame, from its first byte to the end of its body: all of it, or its ends.
  static func sign(_ code: ShortHMAC, _ frame: Span<UInt8>, to target: inout MutableSpan<UInt8>) {
    guard frame.count > 2 * sampleBytes else { return code.write(frame, to: &target) }
    code.write(
      frame.extracting(0..<sampleBytes), frame.extracting(frame.count - sampleBytes..<frame.count),
      to: &target)
  }
}

/// The ciphers of the dialect v1.
struct TuyaFrameCipher {
  let security: TuyaSecurity
  let key: SecretKey

  /// - Parameter direction: one of the vendor's clients leaves the padding of the level SL2 in clear, and expects it encrypted.
  func seal(
    _ body: [UInt8], iv: [UInt8], _ direction: TuyaDirection
  ) throws(TuyaWireProblem) -> [UInt8] {
    do throws(CryptoError) {
      switch security {
      case .sl4: return try AESGCM.seal(PKCS7.padded(body.span).span, key: key, nonce: iv.span)
      case .sl3: return try AESCBC.encrypt(body.span, key: key, iv: iv.span)
      case .sl2:
        let nonce = Array(iv.prefix(ChaCha20.nonceBytes))
        let padded = PKCS7.padded(body.span)
        guard direction == .up else {
          return try ChaCha20.apply(to: padded.span, key: key, nonce: nonce.span, counter: 0)
        }
        let bytes = try ChaCha20.apply(to: body.span, key: key, nonce: nonce.span, counter: 0)
        return bytes + padded.dropFirst(body.count)
      }
    } catch { throw TuyaWireProblem(.decryptFailed, "a frame cannot be encrypted: \(error.text)") }
  }

  func open(
    _ bytes: [UInt8], iv: [UInt8], _ direction: TuyaDirection
  ) throws(TuyaWireProblem) -> [UInt8] {
    do throws(CryptoError) {
      switch security {
      case .sl4:
        let padded = try AESGCM.open(bytes.span, key: key, nonce: iv.span)
        return try PKCS7.unpadded(padded.span)
      case .sl3: return try AESCBC.decrypt(bytes.span, key: key, iv: iv.span)
      case .sl2:
        let nonce = Array(iv.prefix(ChaCha20.nonceBytes))
        guard direction == .up else {
          let padded = try ChaCha20.apply(to: bytes.span, key: key, nonce: nonce.span, counter: 0)
          return try PKCS7.unpadded(padded.span)
        }
        let body = try PKCS7.unpadded(bytes.span)
        return try ChaCha20.apply(to: body.span, key: key, nonce: nonce.span, counter: 0)
      }
    } catch {
      guard error.kind == .padding else {
        throw TuyaWireProblem(
          .decryptFailed, "a frame cannot be decrypted: another key, or it was changed")
      }
      throw TuyaWireProblem(.badPadding, "a decrypted frame does not end in padding")
    }
  }
}
