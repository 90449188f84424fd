import MillraceCrypto
import Testing

@Suite("HMAC of short messages")
struct ShortHMACTests {
  private func code(_ key: [UInt8], _ message: [UInt8], _ more: [UInt8] = [], count: Int = 32) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: count)
    var target = code.mutableSpan
    ShortHMAC(key: SecretKey(key.span)).write(message.span, more.span, to: &target)
    return code
  }

  @Test(
    "every length of message and key gives the code of the library",
    arguments: [0, 1, 16, 32, 63, 64, 65, 200])
  func lengths(keyBytes: Int) {
    let key = (0..<keyBytes).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
    for count in 0...ShortHMAC.longestMessage {
      let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 31 + keyBytes) }
      #expect(code(key, message) == HMAC.sha256(message.span, key: SecretKey(key.span)), "\(count) bytes")
    }
  }

  @Test("two parts are one message")
  func parts() {
    let (key, message) = (Array("key".utf8), (0..<100).map { UInt8($0) })
    for cut in [0, 1, 32, 64, 99, 100] {
      #expect(
        code(key, Array(message[..<cut]), Array(message[cut...])) == code(key, message), "cut at \(cut)")
    }
  }

  @Test("a shorter place receives the first bytes")
  func truncated() {
    let whole = code([1], [2])
    #expect(code([1], [2], count: 20) == Array(whole.prefix(20)))
    #expect(code([1], [2], count: 40) == whole + [UInt8](repeating: 0, count: 8))
  }

  @Test("the first case of RFC 4231")
  func published() {
    let key = [UInt8](repeating: 0x0B, count: 20)
    let expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    let digest = code(key, Array("Hi There".utf8))
    #expect(Hex.encode(digest.span) == expected)
  }

  @Test("neither a description nor a mirror shows the key")
  func hidden() {
    let code = ShortHMAC(key: SecretKey(utf8: "secret"))
    #expect("\(code)" == "ShortHMAC(hidden)" && String(reflecting: code) == "ShortHMAC(hidden)")
    #expect(Mirror(reflecting: code).children.isEmpty)
  }
}
