import Foundation
import MillraceCrypto
import Testing

/// What AES-CBC makes of a message.
struct ChainedExample: Sendable, CustomTestStringConvertible {
  var source: String
  var key: String
  var vector: String
  var message = ""
  var ciphertext: String

  var testDescription: String { source }
}

@Suite("Ciphers without authentication, and padding")
struct CipherTests {
  private static let blocks = """
    6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51
    30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710
    """
  private static let counting = "000102030405060708090a0b0c0d0e0f"

  @Test(
    "AES-CBC without padding has the ciphertexts of NIST SP 800-38A",
    arguments: [
      ChainedExample(
        source: "F.2.1, AES-128", key: "2b7e151628aed2a6abf7158809cf4f3c", vector: counting, message: blocks,
        ciphertext: """
          7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2
          73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7
          """),
      ChainedExample(
        source: "F.2.3, AES-192", key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", vector: counting,
        message: blocks,
        ciphertext: """
          4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a
          571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd
          """),
      ChainedExample(
        source: "F.2.5, AES-256", key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        vector: counting, message: blocks,
        ciphertext: """
          f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d
          39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b
          """),
    ])
  func unpadded(_ example: ChainedExample) throws { try check(example, .none) }

  @Test(
    "AES-CBC with padding has the ciphertexts of Wycheproof",
    arguments: [
      ChainedExample(
        source: "aes_cbc_pkcs5, 1: no message", key: "e34f15c7bd819930fe9d66e0c166e61c",
        vector: "da9520f7d3520277035173299388bee2", ciphertext: "b10ab60153276941361000414aed0a9d"),
      ChainedExample(
        source: "aes_cbc_pkcs5, 2: a whole block", key: "e09eaa5a3f5e56d279d5e7a03373f6ea",
        vector: "c9ee3cd746bf208c65ca9e72a266d54f", message: "ef4eab37181f98423e53e947e7050fd0",
        ciphertext: "d1fa697f3e2e04d64f1a0da203813ca5bc226a0b1d42287b2a5b994a66eaf14a"),
      ChainedExample(
        source: "aes_cbc_pkcs5, 124: a whole block, AES-256",
        key: "612e837843ceae7f61d49625faa7e7494f9253e20cb3adcea686512b043936cd",
        vector: "9ec7b863ac845cad5e4673da21f5b6a9", message: "cc37fae15f745a2f40e2c8b192f2b38d",
        ciphertext: "299295be47e9f5441fe83a7a811c4aeb2650333e681e69fa6b767d28a6ccf282"),
    ])
  func padded(_ example: ChainedExample) throws { try check(example, .pkcs7) }

  private func check(_ example: ChainedExample, _ padding: AESCBC.Padding) throws {
    let (key, vector) = (key(example.key), bytes(example.vector))
    let (message, ciphertext) = (bytes(example.message), bytes(example.ciphertext))
    #expect(try AESCBC.encrypt(message.span, key: key, iv: vector.span, padding: padding) == ciphertext)
    #expect(try AESCBC.decrypt(ciphertext.span, key: key, iv: vector.span, padding: padding) == message)
  }

  @Test(
    "AES-CBC refuses the bad padding of Wycheproof",
    arguments: [
      // aes_cbc_pkcs5, 147, 148 and 150: zeros, alone, behind text, in a block of their own. 152: ones.
      "e07558d746574528fb813f34e3fb7719",
      "c01af61276368818a8295f7d4b5bb2fd",
      "8881e9e02fa9e3037b397957ba1fb7ce783bb4b4e18d7c646f38e0bb8ff92896",
      "c007ddffb76b95208505fe7f3be96172",
    ])
  func badPadding(_ ciphertext: String) throws {
    let key = key("7c78f34dbce8f0557d43630266f59babd1cb92ba624bd1a8f45a2a91c84a804a")
    let (vector, ciphertext) = (bytes("f010f61c31c9aa8fa0d5be5f6b0f2f70"), bytes(ciphertext))
    #expect(
      refusal { () throws(CryptoError) in
        _ = try AESCBC.decrypt(ciphertext.span, key: key, iv: vector.span)
      } == .padding)
    // Without padding it is a message like any other, and not one that PKCS#7 could have made.
    let message = try AESCBC.decrypt(ciphertext.span, key: key, iv: vector.span, padding: .none)
    #expect(
      refusal { () throws(CryptoError) in _ = try PKCS7.unpadded(message.span) } == .padding)
  }

  @Test("AES-CBC pads as PKCS7 does, at every length")
  func sameAsPKCS7() throws {
    let (key, vector) = (key(Self.counting), bytes(Self.counting))
    for count in 0...50 {
      let message = [UInt8](repeating: 7, count: count)
      let ciphertext = try AESCBC.encrypt(message.span, key: key, iv: vector.span)
      let padded = PKCS7.padded(message.span)
      #expect(
        try AESCBC.encrypt(padded.span, key: key, iv: vector.span, padding: .none) == ciphertext)
      #expect(try AESCBC.decrypt(ciphertext.span, key: key, iv: vector.span) == message)
    }
  }

  @Test("AES-CBC refuses keys, vectors and messages of other lengths")
  func lengths() {
    let vector = bytes(Self.counting)
    for count in 0...50 {
      let block = [UInt8](repeating: 1, count: count)
      let isWhole = count > 0 && count.isMultiple(of: 16)
      let expected: CryptoError.Kind? = isWhole ? nil : .messageLength
      #expect(
        refusal { () throws(CryptoError) in
          _ = try AESCBC.encrypt(vector.span, key: SecretKey(block.span), iv: vector.span)
        } == ([16, 24, 32].contains(count) ? nil : .keyLength))
      #expect(
        refusal { () throws(CryptoError) in
          _ = try AESCBC.encrypt(vector.span, key: key(Self.counting), iv: block.span)
        } == (count == 16 ? nil : .nonceLength))
      #expect(
        refusal { () throws(CryptoError) in
          _ = try AESCBC.encrypt(
            block.span, key: key(Self.counting), iv: vector.span, padding: .none)
        } == expected)
      #expect(
        refusal { () throws(CryptoError) in
          _ = try AESCBC.decrypt(
            block.span, key: key(Self.counting), iv: vector.span, padding: .none)
        } == expected)
    }
  }

  @Test("padding fills to a whole block, and one more when it is whole")
  func pads() throws {
    #expect(PKCS7.padded(Span()) == [UInt8](repeating: 16, count: 16))
    for count in 0...50 {
      let message = (0..<count).map { UInt8($0) }
      let padded = PKCS7.padded(message.span)
      let filled = 16 - count % 16
      #expect(padded == message + [UInt8](repeating: UInt8(filled), count: filled))
      #expect(try PKCS7.unpadded(padded.span) == message)
    }
  }

  @Test("padding is valid only when as many bytes as the last one says have its value")
  func unpads() {
    for last in UInt8.min...UInt8.max {
      let block = [UInt8](repeating: 99, count: 16) + [UInt8](repeating: last, count: 16)
      let isValid = (1...16).contains(last)
      #expect(
        refusal { () throws(CryptoError) in _ = try PKCS7.unpadded(block.span) }
          == (isValid ? nil : .padding))
      for index in 16..<31 {
        for bit in 0..<8 {
          let flawed = block.flipping(bit: 8 * index + bit)
          let isOutside = isValid && index < 32 - Int(last)
          #expect(
            refusal { () throws(CryptoError) in _ = try PKCS7.unpadded(flawed.span) }
              == (isOutside ? nil : .padding))
        }
      }
    }
    for count in 0..<16 {
      let part = [UInt8](repeating: 1, count: count)
      #expect(refusal { () throws(CryptoError) in _ = try PKCS7.unpadded(part.span) } == .padding)
    }
  }

  @Test("ChaCha20 has the ciphertext of RFC 8439, section 2.4.2, and undoes itself")
  func chaCha20() throws {
    let text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      + "sunscreen would be it."
    let (key, nonce) = (
      key("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
      bytes("000000000000004a00000000")
    )
    let expected = bytes(
      """
      6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd62b357
      1639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736
      5af90bbf74a35be6b40b8eedf2785e42874d
      """)
    let ciphertext = try ChaCha20.apply(to: text.utf8.span, key: key, nonce: nonce.span, counter: 1)
    #expect(ciphertext == expected)
    #expect(
      try ChaCha20.apply(to: expected.span, key: key, nonce: nonce.span, counter: 1) == Array(text.utf8))
    // The second block of 64 bytes has the next number.
    let second = Array(text.utf8.dropFirst(64))
    #expect(
      try ChaCha20.apply(to: second.span, key: key, nonce: nonce.span, counter: 2)
        == Array(expected.dropFirst(64)))
  }

  @Test("ChaCha20 has the key stream of RFC 8439, appendix A.1, from block 0")
  func keyStream() throws {
    let zeros = [UInt8](repeating: 0, count: 64)
    let stream = try ChaCha20.apply(
      to: zeros.span, key: SecretKey(zeros.span.extracting(0..<32)), nonce: zeros.span.extracting(0..<12),
      counter: 0)
    #expect(
      stream
        == bytes(
          """
          76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7
          da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586
          """))
  }

  @Test("ChaCha20 takes a key of 32 and a nonce of 12 bytes, and any message")
  func chaChaLengths() throws {
    let (secret, nonce) = ([UInt8](0..<32), [UInt8](0..<12))
    for count in 0...40 {
      let other = [UInt8](repeating: 1, count: count)
      #expect(
        refusal { () throws(CryptoError) in
          _ = try ChaCha20.apply(
            to: secret.span, key: SecretKey(other.span), nonce: nonce.span, counter: 0)
        } == (count == 32 ? nil : .keyLength))
      #expect(
        refusal { () throws(CryptoError) in
          _ = try ChaCha20.apply(
            to: secret.span, key: SecretKey(secret.span), nonce: other.span, counter: 0)
        } == (count == 12 ? nil : .nonceLength))
      #expect(
        try ChaCha20.apply(to: other.span, key: SecretKey(secret.span), nonce: nonce.span, counter: 0).count
          == count)
    }
  }

  @Test("ChaCha20 goes up to the last number of a block, and not round to the first")
  func lastBlock() throws {
    let (secret, nonce) = (SecretKey([UInt8](0..<32).span), [UInt8](0..<12))
    let zeros = [UInt8](repeating: 0, count: 129)
    let (two, last) = (UInt32.max - 1, UInt32.max)
    let stream = try ChaCha20.apply(
      to: zeros.span.extracting(first: 128), key: secret, nonce: nonce.span, counter: two)
    #expect(
      try ChaCha20.apply(to: zeros.span.extracting(first: 64), key: secret, nonce: nonce.span, counter: last)
        == Array(stream.suffix(64)))
    for (count, counter) in [(65, last), (129, two)] {
      #expect(
        refusal { () throws(CryptoError) in
          _ = try ChaCha20.apply(
            to: zeros.span.extracting(first: count), key: secret, nonce: nonce.span, counter: counter)
        } == .messageLength)
    }
  }

  @Test(
    "a cipher that the machine's OpenSSL leaves out is an error of the call, and does not end the program")
  func unavailable() async {
    await #expect(processExitsWith: .success) {
      // A configuration with another provider than the default one, read when OpenSSL is first used.
      let file = FileManager.default.temporaryDirectory.appending(path: "millrace-openssl-\(getpid()).cnf")
      let text = "openssl_conf = a\n[a]\nproviders = b\n[b]\nnull = c\n[c]\nactivate = 1\n"
      try Data(text.utf8).write(to: file)
      defer { unlink(file.path) }
      setenv("OPENSSL_CONF", file.path, 1)
      let (key, block) = (SecretKey([UInt8](0..<32).span), [UInt8](0..<16))
      let nonce = block.span.extracting(first: 12)
      let kinds = [
        refusal { () throws(CryptoError) in _ = try AESCBC.encrypt(block.span, key: key, iv: block.span) },
        refusal { () throws(CryptoError) in _ = try AESGCM.seal(block.span, key: key, nonce: nonce) },
        // Not `notAuthentic`: the message may be as good as any.
        refusal { () throws(CryptoError) in _ = try AESGCM.open(block.span, key: key, nonce: nonce) },
        refusal { () throws(CryptoError) in _ = try ChaChaPoly.seal(block.span, key: key, nonce: nonce) },
        refusal { () throws(CryptoError) in
          _ = try ChaCha20.apply(to: block.span, key: key, nonce: nonce, counter: 0)
        },
      ]
      #expect(kinds == [.library, .library, .library, .library, .library])
    }
  }
}
