import MillraceCrypto
import Testing

/// What an authenticated cipher makes of a message.
struct SealedExample: Sendable, CustomTestStringConvertible {
  var source: String
  var key: String
  var nonce: String
  var data = ""
  var message = ""
  var ciphertext = ""
  var tag: String

  var testDescription: String { source }
}

/// The two authenticated ciphers: what holds for one holds for the other.
enum AuthenticatedCipher: CaseIterable, Sendable {
  case aesGCM, chaChaPoly

  func seal(
    _ message: Span<UInt8>, _ key: SecretKey, _ nonce: Span<UInt8>, _ data: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    switch self {
    case .aesGCM: try AESGCM.seal(message, key: key, nonce: nonce, authenticating: data)
    case .chaChaPoly: try ChaChaPoly.seal(message, key: key, nonce: nonce, authenticating: data)
    }
  }

  func open(
    _ sealed: Span<UInt8>, _ key: SecretKey, _ nonce: Span<UInt8>, _ data: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    switch self {
    case .aesGCM: try AESGCM.open(sealed, key: key, nonce: nonce, authenticating: data)
    case .chaChaPoly: try ChaChaPoly.open(sealed, key: key, nonce: nonce, authenticating: data)
    }
  }
}

@Suite("Authenticated ciphers")
struct AEADTests {
  private static let message = """
    d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
    1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39
    """
  private static let data = "feedfacedeadbeeffeedfacedeadbeefabaddad2"
  private static let half = "feffe9928665731c6d6a8f9467308308"
  private static let zeros = "00000000000000000000000000000000"

  @Test(
    "AES-GCM has the examples of its specification and of Wycheproof, with nonces of 12, 16 and 60 bytes",
    arguments: [
      SealedExample(
        source: "McGrew and Viega, test case 1", key: zeros, nonce: "000000000000000000000000",
        tag: "58e2fccefa7e3061367f1d57a4e7455a"),
      SealedExample(
        source: "McGrew and Viega, test case 2", key: zeros, nonce: "000000000000000000000000",
        message: zeros,
        ciphertext: "0388dace60b6a392f328c2b971b2fe78", tag: "ab6e47d42cec13bdf53a67b21257bddf"),
      SealedExample(
        source: "McGrew and Viega, test case 4", key: half, nonce: "cafebabefacedbaddecaf888", data: data,
        message: message,
        ciphertext: """
          42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05
          1ba30b396a0aac973d58e091
          """,
        tag: "5bc94fbc3221a5db94fae95ae7121a47"),
      SealedExample(
        source: "McGrew and Viega, test case 6", key: half,
        nonce: """
          9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0c95156809539fcf0e2429a6b5254
          16aedbf5a0de6a57a637b39b
          """,
        data: data, message: message,
        ciphertext: """
          8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca701e4a9a4fba43c90ccdcb281d48c7c6f
          d62875d2aca417034c34aee5
          """,
        tag: "619cc5aefffe0bfa462af43c1699d050"),
      SealedExample(
        source: "McGrew and Viega, test case 10", key: half + "feffe9928665731c",
        nonce: "cafebabefacedbaddecaf888", data: data, message: message,
        ciphertext: """
          3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f47
          18e2448b2fe324d9ccda2710
          """,
        tag: "2519498e80f1478f37ba55bd6d27618c"),
      SealedExample(
        source: "McGrew and Viega, test case 16", key: half + half, nonce: "cafebabefacedbaddecaf888",
        data: data, message: message,
        ciphertext: """
          522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838
          c5f61e6393ba7a0abcc9f662
          """,
        tag: "76fc6ece0f4e1768cddf8853bb2d551b"),
      SealedExample(
        source: "Wycheproof aes_gcm, 71", key: "2034a82547276c83dd3212a813572bce",
        nonce: "3254202d854734812398127a3d134421",
        data: "1a0293d8f90219058902139013908190bc490890d3ff12a3",
        message: "02efd2e5782312827ed5d230189a2a342b277ce048462193",
        ciphertext: "64069c2d58690561f27ee199e6b479b6369eec688672bde9",
        tag: "9b7abadd6e69c1d9ec925786534f5075"),
      SealedExample(
        source: "Wycheproof aes_gcm, 240: the hashed nonce as a counter, 000102..0f",
        key: "00112233445566778899aabbccddeeff102132435465768798a9bacbdcedfe0f",
        nonce: "5c2ea9b695fcf6e264b96074d6bfa572", message: zeros + zeros + "0000000000000000",
        ciphertext: "28e1c5232f4ee8161dbe4c036309e0b3254e9212bef0a93431ce5e5604c8f6a73c18a3183018b770",
        tag: "d5808a1bd11a01129bf3c6919aff2339"),
      SealedExample(
        source: "Wycheproof aes_gcm, 242: a counter of ones, which wraps",
        key: "00112233445566778899aabbccddeeff102132435465768798a9bacbdcedfe0f",
        nonce: "ce20a7e870696a5e68533c465bad2ba1", message: zeros + zeros + "0000000000000000",
        ciphertext: "4f4350565d91d9aa8c5f4048550492ad6d6fdabf66da5d1e2af7bfe1a8aadaa0baa3de38a41d9713",
        tag: "155da6441ec071ef2d8e6cffbacc1c7c"),
      SealedExample(
        source: "Wycheproof aes_gcm, 245: only the last 32 bits of the counter wrap",
        key: "00112233445566778899aabbccddeeff102132435465768798a9bacbdcedfe0f",
        nonce: "ecd52120af240e9b4bf3b9d1eeb49434", message: zeros + zeros + "0000000000000000",
        ciphertext: "36b3fbecd09178d04527fb37544f5579d20d60a41266f685c48098e1a52804ca387d90709d3268dd",
        tag: "033e0ef2953ebfd8425737c7d393f89a"),
    ])
  func aesGCM(_ example: SealedExample) throws { try check(example, .aesGCM) }

  @Test(
    "ChaCha20-Poly1305 has the examples of RFC 8439 and of Wycheproof",
    arguments: [
      SealedExample(
        source: "RFC 8439, section 2.8.2",
        key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        nonce: "070000004041424344454647", data: "50515253c0c1c2c3c4c5c6c7",
        message: """
          4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a20496620492063
          6f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73
          637265656e20776f756c642062652069742e
          """,
        ciphertext: """
          d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b
          1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc
          3ff4def08e4b7a9de576d26586cec64b6116
          """,
        tag: "1ae10b594f09e26a7e902ecbd0600691"),
      SealedExample(
        source: "Wycheproof chacha20_poly1305, no message (the tag that 146 expects)",
        key: "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
        nonce: "000102030405060708090a0b", data: "000102", tag: "f4409bb729039d0814ac514054323f44"),
    ])
  func chaChaPoly(_ example: SealedExample) throws { try check(example, .chaChaPoly) }

  private func check(_ example: SealedExample, _ cipher: AuthenticatedCipher) throws {
    let (key, nonce, data) = (key(example.key), bytes(example.nonce), bytes(example.data))
    let (message, sealed) = (bytes(example.message), bytes(example.ciphertext + example.tag))
    #expect(try cipher.seal(message.span, key, nonce.span, data.span) == sealed)
    #expect(try cipher.open(sealed.span, key, nonce.span, data.span) == message)
  }

  @Test(
    "any changed bit of message, tag, nonce, data or key is noticed", arguments: AuthenticatedCipher.allCases)
  func changed(_ cipher: AuthenticatedCipher) throws {
    let (secret, nonce) = ([UInt8](0..<32), [UInt8](100..<112))
    let (message, data) = ([UInt8](0..<20), [UInt8](50..<60))
    let key = SecretKey(secret.span)
    let sealed = try cipher.seal(message.span, key, nonce.span, data.span)
    #expect(sealed.count == message.count + 16)

    func refused(
      _ sealed: [UInt8], _ key: SecretKey, _ nonce: [UInt8], _ data: [UInt8]
    ) -> CryptoError.Kind? {
      refusal { () throws(CryptoError) in _ = try cipher.open(sealed.span, key, nonce.span, data.span) }
    }
    #expect(refused(sealed, key, nonce, data) == nil)
    for bit in 0..<8 * sealed.count {
      #expect(refused(sealed.flipping(bit: bit), key, nonce, data) == .notAuthentic)
    }
    for bit in 0..<8 * nonce.count {
      #expect(refused(sealed, key, nonce.flipping(bit: bit), data) == .notAuthentic)
    }
    for bit in 0..<8 * data.count {
      #expect(refused(sealed, key, nonce, data.flipping(bit: bit)) == .notAuthentic)
    }
    for bit in 0..<8 * secret.count {
      #expect(refused(sealed, SecretKey(secret.flipping(bit: bit).span), nonce, data) == .notAuthentic)
    }
    #expect(refused(sealed, key, nonce, []) == .notAuthentic)
    for count in 0..<sealed.count {
      #expect(refused(Array(sealed.prefix(count)), key, nonce, data) == .notAuthentic)
    }
    #expect(refused(sealed + [0], key, nonce, data) == .notAuthentic)
  }

  @Test("messages of every length open as they were sealed", arguments: AuthenticatedCipher.allCases)
  func lengths(_ cipher: AuthenticatedCipher) throws {
    let (key, nonce) = (SecretKey([UInt8](0..<32).span), [UInt8](100..<112))
    for count in Array(0...130) + [65_535, 1_000_003] {
      let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      let sealed = try cipher.seal(message.span, key, nonce.span)
      #expect(sealed.count == count + 16)
      #expect(try cipher.open(sealed.span, key, nonce.span) == message)
    }
  }

  @Test("keys and nonces of other lengths are refused, to seal and to open")
  func wrongLengths() {
    for count in 0...140 {
      let (secret, nonce) = ([UInt8](repeating: 1, count: count), [UInt8](repeating: 2, count: count))
      let sealed = [UInt8](repeating: 3, count: 32)
      for cipher in AuthenticatedCipher.allCases {
        let keys = cipher == .aesGCM ? [16, 24, 32] : [32]
        let nonces = cipher == .aesGCM ? Array(12...128) : [12]
        let key = SecretKey(secret.span)
        let (right, twelve) = (SecretKey([UInt8](0..<32).span), [UInt8](0..<12))
        #expect(
          refusal { () throws(CryptoError) in _ = try cipher.seal(sealed.span, key, twelve.span) }
            == (keys.contains(count) ? nil : .keyLength))
        #expect(
          refusal { () throws(CryptoError) in _ = try cipher.open(sealed.span, key, twelve.span) }
            == (keys.contains(count) ? .notAuthentic : .keyLength))
        #expect(
          refusal { () throws(CryptoError) in _ = try cipher.seal(sealed.span, right, nonce.span) }
            == (nonces.contains(count) ? nil : .nonceLength))
        #expect(
          refusal { () throws(CryptoError) in _ = try cipher.open(sealed.span, right, nonce.span) }
            == (nonces.contains(count) ? .notAuthentic : .nonceLength))
      }
    }
  }

  @Test("errors say which cipher, which length and what to do, and nothing of key or message")
  func messages() throws {
    func text(_ body: () throws(CryptoError) -> Void) -> String {
      do { try body() } catch { return "\(error)" }
      return ""
    }
    let (short, sealed) = (SecretKey(utf8: "horse"), Array("staple-staple-staple".utf8))
    let (right, nonce) = (SecretKey([UInt8](0..<32).span), [UInt8](0..<12))
    #expect(
      text { () throws(CryptoError) in _ = try AESGCM.seal(sealed.span, key: short, nonce: nonce.span) }
        == "AES-GCM takes a key of 16, 24 or 32 bytes, not 5; check how the key was decoded")
    #expect(
      text { () throws(CryptoError) in _ = try AESGCM.seal(sealed.span, key: right, nonce: Span()) }
        == "AES-GCM takes a nonce of 12 to 128 bytes, not 0; check how it was made or read")
    #expect(
      text { () throws(CryptoError) in _ = try AESGCM.open(sealed.span, key: right, nonce: nonce.span) }
        == "AES-GCM: the message is not authentic; discard it, and check key, nonce and associated data")
  }
}
