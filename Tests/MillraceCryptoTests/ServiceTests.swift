import MillraceCrypto
import MillraceJSON
import Testing

/// Tokens, signatures and frames of services, put together from the parts of this module.
@Suite("What services sign and encrypt")
struct ServiceTests {
  struct Signed: Sendable {
    var token: String
    var query: [(name: String, value: String)]
    var code: String
  }

  @Test(
    "the signed queries of Tencent IVH's documents (107197, 52441068215, 100386) have their codes",
    arguments: [
      // In Base64 aCNWYzZdplxWVo+JsqzZc9+J9XrwWWITfX3eQpsLVno=
      Signed(
        token: "example_accesstoken", query: [("timestamp", "1717639699"), ("appkey", "example_appkey")],
        code: "68235663365da65c56568f89b2acd973df89f57af05962137d7dde429b0b567a"),
      // QVenICk0VHtHGYZKXM6IC+W1CjZC1joSr/x0gfKKYT4=
      Signed(
        token: "example_accesstoken",
        query: [
          ("timestamp", "1717639699"), ("requestid", "example_requestid"), ("appkey", "example_appkey"),
        ],
        code: "4157a7202934547b4719864a5cce880be5b50a3642d63a12affc7481f28a613e"),
      // BfWuaC9kmaicCggXc693uK+sZQ8qe88O4HVQNTdwZuo=
      Signed(
        token: "f68f2d10ae9e4604b76fb05cf46bccec",
        query: [("timestamp", "1646636485"), ("appkey", "e38267c0e86411ebb02aed82acb0ed99")],
        code: "05f5ae682f6499a89c0a081773af77b8afac650f2a7bcf0ee0755035377066ea"),
    ])
  func ivh(_ example: Signed) {
    let text = CanonicalQuery(example.query).plain
    #expect(HMAC.sha256(text.utf8.span, key: SecretKey(utf8: example.token)) == bytes(example.code))
  }

  @Test("the signed call of Alibaba Cloud's documents (DescribeRegions) has its code")
  func aliyun() {
    let query = CanonicalQuery([
      ("SignatureVersion", "1.0"), ("Action", "DescribeRegions"), ("Format", "XML"),
      ("SignatureNonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"), ("Version", "2014-05-26"),
      ("AccessKeyId", "testid"), ("SignatureMethod", "HMAC-SHA1"), ("Timestamp", "2016-02-23T12:46:24Z"),
    ])
    let text = "GET&" + PercentEncoding.encode("/") + "&" + PercentEncoding.encode(query.encoded)
    // In Base64 OLeaidS1JvxuMvnyHOwuJ+uX5qY=
    #expect(
      HMAC.sha1(text.utf8.span, key: SecretKey(utf8: "testsecret&"))
        == bytes("38b79a89d4b526fc6e32f9f21cec2e27eb97e6a6"))
  }

  @Test("the token of ARTC's documents has its digest")
  func artc() {
    let text = "abc" + "abckey" + "abcChannel" + "abcUser" + "" + "1699423634"
    #expect(
      Hex.encode(SHA256.hash(text.utf8.span).span)
        == "3c9ee8d9f8734f0b7560ed8022a0590659113955819724fc9345ab8eedf84f31")
  }

  /// A frame of Tuya's protocol in its first version: header, vector of 16 bytes, length, ciphertext, code.
  struct Frame: Sendable, CustomTestStringConvertible {
    enum Cipher: Sendable { case gcm, cbc, chaCha20 }

    var cipher: Cipher
    var frame: String
    var application: String

    var testDescription: String { "\(cipher)" }
  }

  @Test(
    "frames that Tuya's own code reads are signed and decrypted with the keys derived from theirs",
    arguments: [
      Frame(
        cipher: .gcm,
        frame: """
          01001a09004956303132333435363738396162636400000040194eafc2cf9e45c23368a91a02428cb605c1f376674287
          c64baff831b248decfd343765a2df8992a3754b7fe2003824fc58cd54054b4108b57b77b77a765d3e6
          """,
        application: "780000000401020304"),
      Frame(
        cipher: .cbc,
        frame: """
          01000307004956303132333435363738396162636400000040e8d7dfec9357d095a5d229e0ac669aed29c34e24a55fd6
          4e608290ec4f861933d734dfb6a93f05804e0ccd292c169cad85bd24ba16ced4c635a9fe8d136dc7f0
          """,
        application: "090000000f007104000000080000019879332c0a00000000"),
      Frame(
        cipher: .chaCha20,
        frame: """
          01000105004956303132333435363738396162636400000050d5175d8cf6f98255c226cf32767e10522f2718fc454f30
          63f9313c42dd0f6c488f0c280441306b77e483f5aeaad2d36bb86873c2c4d60952ce996b3ef6be3b69bb64f380bfd5fd
          7bbcbc7bcf7fa43242
          """,
        application: "07000000190018020000000200c800170600000009636f6e6e2d3030303100000000"),
    ])
  func tuya(_ example: Frame) throws {
    let local = SecretKey(utf8: "0123456789abcdef")
    let cryptKey = try HKDF.sha256(
      local, salt: "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF".utf8.span, byteCount: 32)
    let signKey = try HKDF.sha256(
      local, salt: "zY9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE".utf8.span, byteCount: 32)
    #expect(cryptKey == key("5ed1ba2c5fe0543fb5805a421b884f8e4e6562a312c9f822a09b6c253cf1cd43"))
    #expect(signKey == key("fae8fb0560d6e0dbd6e469cb88184ace3abe6c0d3c55e4734caac9ecf16280ad"))

    let frame = bytes(example.frame)
    let (signed, code) = (frame.dropLast(32), frame.suffix(32))
    let sample = signed.count > 64 ? Array(signed.prefix(32) + signed.suffix(32)) : Array(signed)
    let expected = HMAC.sha256(sample.span, key: signKey)
    #expect(areEqual(expected, Array(code)))

    let (vector, body) = (Array(frame[5..<21]), Array(signed.dropFirst(25)))
    let application = bytes(example.application)
    let padded = PKCS7.padded(application.span)
    switch example.cipher {
    case .gcm:
      let opened = try AESGCM.open(body.span, key: cryptKey, nonce: vector.span)
      #expect(try PKCS7.unpadded(opened.span) == application)
      #expect(try AESGCM.seal(padded.span, key: cryptKey, nonce: vector.span) == body)
    case .cbc:
      #expect(try AESCBC.decrypt(body.span, key: cryptKey, iv: vector.span) == application)
      #expect(try AESCBC.encrypt(application.span, key: cryptKey, iv: vector.span) == body)
    case .chaCha20:
      let nonce = Array(vector.prefix(12))
      let opened = try ChaCha20.apply(to: body.span, key: cryptKey, nonce: nonce.span, counter: 0)
      #expect(try PKCS7.unpadded(opened.span) == application)
      #expect(try ChaCha20.apply(to: padded.span, key: cryptKey, nonce: nonce.span, counter: 0) == body)
    }
  }
}
