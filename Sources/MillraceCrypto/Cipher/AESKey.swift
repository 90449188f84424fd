/// The lengths of keys that AES takes, FIPS 197.
enum AESKey: Int {
  case bits128 = 16
  case bits192 = 24
  case bits256 = 32

  init(_ key: SecretKey, _ cipher: String) throws(CryptoError) {
    guard let length = AESKey(rawValue: key.byteCount) else {
      throw .key(cipher, takes: "16, 24 or 32", not: key.byteCount)
    }
    self = length
  }
}
