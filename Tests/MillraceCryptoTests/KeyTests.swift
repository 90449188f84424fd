import MillraceCrypto
import Testing

@Suite("Keys")
struct KeyTests {
  /// Stands for whatever holds a key: settings, a session, an error.
  private struct Holder {
    let name = "holder"
    let key: SecretKey
    let more: [SecretKey?]
  }

  @Test("a key shows nothing of itself, however it is printed and wherever it is kept")
  func hidden() {
    let text = "correct-horse-battery-staple"
    let key = SecretKey(utf8: text)
    let holder = Holder(key: key, more: [key, nil])
    var dumped = ""
    dump(holder, to: &dumped)
    dump(key, to: &dumped)
    let shown = [
      "\(key)", "\(holder)", "\([key])", "\(Optional(key) as Any)", String(describing: key),
      String(reflecting: key), String(reflecting: holder), "\(["key": key])", key.description,
      key.debugDescription, dumped,
    ]
    let numbers = text.utf8.prefix(3).map { String($0) }.joined(separator: ", ")
    for line in shown {
      #expect(line.contains("hidden"))
      #expect(!line.contains("horse"))
      #expect(!line.contains(numbers))
      #expect(!line.contains("Symmetric"))
    }
    // Not even the length: that of a password says much.
    #expect("\(key) \(String(reflecting: key))" == "SecretKey(hidden) SecretKey(hidden)")
    #expect(Mirror(reflecting: key).children.isEmpty)
  }

  @Test("keys are equal when all their bytes are")
  func equality() {
    let secret = bytes("000102030405060708090a0b0c0d0e0f")
    let key = SecretKey(secret.span)
    #expect(key == SecretKey(secret.span))
    #expect(key != SecretKey(secret.flipping(bit: 127).span))
    #expect(key != SecretKey(secret.span.extracting(1...)))
    #expect(SecretKey(utf8: "é") == SecretKey(bytes("c3a9").span))
    #expect(key.byteCount == 16)
    #expect(SecretKey(utf8: "").byteCount == 0)
  }

  @Test("a key keeps its bytes when what it was made from changes")
  func copied() {
    var secret = bytes("000102030405060708090a0b0c0d0e0f")
    let key = SecretKey(secret.span)
    secret[0] = 0xFF
    #expect(key == SecretKey(bytes("000102030405060708090a0b0c0d0e0f").span))
  }

  struct Derivation: Sendable {
    var secret: String
    var salt: String
    var info: String
    var derived: String
  }

  @Test(
    "HKDF-SHA256 derives the keys of RFC 5869, appendix A",
    arguments: [
      Derivation(
        secret: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", salt: "000102030405060708090a0b0c",
        info: "f0f1f2f3f4f5f6f7f8f9",
        derived: """
          3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865
          """),
      Derivation(
        secret: """
          000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f
          303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f
          """,
        salt: """
          606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f
          909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf
          """,
        info: """
          b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf
          e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff
          """,
        derived: """
          b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09
          da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
          """),
      Derivation(
        secret: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", salt: "", info: "",
        derived: """
          8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8
          """),
    ])
  func hkdf(_ example: Derivation) throws {
    let expected = key(example.derived)
    let derived = try HKDF.sha256(
      key(example.secret), salt: bytes(example.salt).span, info: bytes(example.info).span,
      byteCount: expected.byteCount)
    #expect(derived == expected)
  }

  @Test("HKDF derives keys of 1 to 8160 bytes, and refuses other lengths")
  func lengths() throws {
    let secret = SecretKey(utf8: "secret")
    for count in [1, 31, 32, 33, HKDF.longestKey] {
      #expect(try HKDF.sha256(secret, salt: Span(), byteCount: count).byteCount == count)
    }
    #expect(
      try HKDF.sha256(SecretKey(utf8: ""), salt: Span(), byteCount: 32)
        == key("eb70f01dede9afafa449eee1b1286504e1f62388b3f7dd4f956697b0e828fe18"))
    for count in [Int.min, -1, 0, HKDF.longestKey + 1, Int.max] {
      #expect(
        refusal { () throws(CryptoError) in _ = try HKDF.sha256(secret, salt: Span(), byteCount: count) }
          == .messageLength)
    }
  }
}
