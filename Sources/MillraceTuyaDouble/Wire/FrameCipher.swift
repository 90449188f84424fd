internal import MillraceCrypto

/// The ciphers of v1. A body is padded to whole blocks of 16 bytes (PKCS#7) whatever the cipher is.
enum FrameCipher {
  /// Bytes of the IV that ChaCha20 takes as its nonce.
  private static let nonce = 12

  static func seal(
    _ body: [UInt8], _ keys: CloudKeys, iv: [UInt8], from side: WireSide
  ) throws(WireFault) -> [UInt8] {
    do throws(CryptoError) {
      switch keys.dialect {
      case .v21: return body
      case .v1(3): return try AESCBC.encrypt(body.span, key: keys.crypt, iv: iv.span)
      case .v1(2):
        let padded = PKCS7.padded(body.span)
        // Clients leave the padding in clear text, and expect it encrypted.
        guard side == .client else { return try chacha(padded, keys, iv) }
        return try chacha(body, keys, iv) + padded.suffix(padded.count - body.count)
      case .v1:
        let padded = PKCS7.padded(body.span)
        return try AESGCM.seal(padded.span, key: keys.crypt, nonce: iv.span)
      }
    } catch { throw WireFault(.notDecrypted, "cannot encrypt: \(error)") }
  }

  static func open(
    _ body: [UInt8], _ keys: CloudKeys, iv: [UInt8], from side: WireSide
  ) throws(WireFault) -> [UInt8] {
    do throws(CryptoError) {
      switch keys.dialect {
      case .v21: return body
      case .v1(3): return try AESCBC.decrypt(body.span, key: keys.crypt, iv: iv.span)
      case .v1(2):
        guard side == .client else {
          let padded = try chacha(body, keys, iv)
          return try PKCS7.unpadded(padded.span)
        }
        let count = try PKCS7.unpadded(body.span).count
        return try chacha(Array(body.prefix(count)), keys, iv)
      case .v1:
        let padded = try AESGCM.open(body.span, key: keys.crypt, nonce: iv.span)
        return try PKCS7.unpadded(padded.span)
      }
    } catch {
      throw WireFault(error.kind == .padding ? .badPadding : .notDecrypted, "cannot decrypt: \(error)")
    }
  }

  private static func chacha(_ bytes: [UInt8], _ keys: CloudKeys, _ iv: [UInt8]) throws(CryptoError)
    -> [UInt8]
  {
    let start = Array(iv.prefix(nonce))
    return try ChaCha20.apply(to: bytes.span, key: keys.crypt, nonce: start.span, counter: 0)
  }
}
