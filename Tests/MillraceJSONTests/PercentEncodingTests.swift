import MillraceJSON
import Testing

@Suite("Percent-encoding") struct PercentEncodingTests {
  @Test("unreserved characters of RFC 3986 stay, and every other byte is escaped in upper case")
  func percent() {
    let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    #expect(PercentEncoding.encode(unreserved) == unreserved)
    for byte in UInt8(0)..<128 where !unreserved.utf8.contains(byte) {
      let digits = String(byte, radix: 16, uppercase: true)
      #expect(
        PercentEncoding.encode(String(Unicode.Scalar(byte))) == "%" + (byte < 16 ? "0" : "") + digits)
    }
    #expect(PercentEncoding.encode("a b+c*/'ü你😀") == "a%20b%2Bc%2A%2F%27%C3%BC%E4%BD%A0%F0%9F%98%80")
    #expect(PercentEncoding.encode(PercentEncoding.encode(":")) == "%253A")
    #expect(PercentEncoding.encode("") == "")
  }
}
