/// The lengths of keys that AES takes, FIPS 197.
enum AESKey {
  static func check(_ key: SecretKey, _ cipher: String) throws(CryptoError) {
    guard [16, 24, 32].contains(key.byteCount) else {
      throw .key(cipher, takes: "16, 24 or 32", not: key.byteCount)
    }
  }
}
