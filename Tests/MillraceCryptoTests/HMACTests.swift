import MillraceCrypto
import Testing

@Suite("HMAC")
struct HMACTests {
  struct Example: Sendable {
    var key: [UInt8]
    var message: [UInt8]
    var code: String
  }

  private static func example(_ key: [UInt8], _ message: [UInt8], _ code: String) -> Example {
    Example(key: key, message: message, code: code)
  }

  private static let counting = [UInt8](1...25)
  private static func repeated(_ byte: UInt8, _ count: Int) -> [UInt8] {
    Array(repeating: byte, count: count)
  }

  @Test(
    "HMAC-SHA256 has the codes of RFC 4231, section 4",
    arguments: [
      example(
        repeated(0x0B, 20), Array("Hi There".utf8),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
      example(
        Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
      example(
        repeated(0xAA, 20), repeated(0xDD, 50),
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
      example(
        counting, repeated(0xCD, 50), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
      example(repeated(0x0C, 20), Array("Test With Truncation".utf8), "a3b6167473100ee06e0c796c2955552b"),
      example(
        repeated(0xAA, 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
      example(
        repeated(0xAA, 131),
        Array(
          ("This is a test using a larger than block-size key and a larger than block-size data. "
            + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
    ])
  func sha256(_ example: Example) {
    let expected = bytes(example.code)
    let code = HMAC.sha256(example.message.span, key: SecretKey(example.key.span))
    #expect(code.count == SHA256.digestBytes)
    // The fifth is cut to 128 bits in the RFC.
    #expect(Array(code.prefix(expected.count)) == expected)
  }

  @Test(
    "HMAC-SHA1 has the codes of RFC 2202, section 3",
    arguments: [
      example(repeated(0x0B, 20), Array("Hi There".utf8), "b617318655057264e28bc0b6fb378c8ef146be00"),
      example(
        Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
        "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
      example(repeated(0xAA, 20), repeated(0xDD, 50), "125d7342b9ac11cd91a39af48aa17b4f63f175d3"),
      example(counting, repeated(0xCD, 50), "4c9007f4026250c6bc8414f9bf50c86c2d7235da"),
      example(
        repeated(0x0C, 20), Array("Test With Truncation".utf8), "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04"),
      example(
        repeated(0xAA, 80), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
        "aa4ae5e15272d00e95705637ce8a3b55ed402112"),
      example(
        repeated(0xAA, 80),
        Array("Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data".utf8),
        "e8e99d0f45237d786d6bbaa7965c7808bbff1a91"),
    ])
  func sha1(_ example: Example) {
    #expect(HMAC.sha1(example.message.span, key: SecretKey(example.key.span)) == bytes(example.code))
  }

  @Test("an empty key and an empty message have codes too")
  func empty() {
    let key = SecretKey(Span())
    #expect(
      HMAC.sha256(Span(), key: key)
        == bytes("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"))
    #expect(HMAC.sha1(Span(), key: key) == bytes("fbdb1d1b18aa6c08324b7d64b71fb76370690e1d"))
  }
}
