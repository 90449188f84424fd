import MillraceCrypto
import Testing

@Suite("Hexadecimal digits and queries")
struct TextTests {
  @Test("every byte has its two lower-case digits")
  func encodesHex() {
    let all = [UInt8](0...255)
    let text = Hex.encode(all.span)
    #expect(text.hasPrefix("000102030405060708090a0b0c0d0e0f10"))
    #expect(text.hasSuffix("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
    #expect(text.count == 512)
    #expect(Hex.decode(text) == all)
    #expect(Hex.decode(text.uppercased()) == all)
    #expect(Hex.encode(Span()) == "")
    #expect(Hex.decode("") == [])
  }

  @Test("two characters are a byte exactly when both are digits")
  func decodesHex() {
    let digits = Array("0123456789abcdefABCDEF".unicodeScalars)
    for first in (0...255).map({ Unicode.Scalar(UInt8($0)) }) {
      for second in (0...255).map({ Unicode.Scalar(UInt8($0)) }) {
        var text = String(first)
        text.unicodeScalars.append(second)
        let decoded = Hex.decode(text)
        if digits.contains(first) && digits.contains(second) {
          #expect(decoded == UInt8(text, radix: 16).map { [$0] })
        } else {
          #expect(decoded == nil)
        }
      }
    }
    for text in ["0", "000", "00:00", " 00", "0x00", "００", "é", "0é"] { #expect(Hex.decode(text) == nil) }
  }

  @Test("a query is sorted by the bytes of names, then of values, whatever the order it came in")
  func sorted() {
    let sorted = [
      ("", "1"), ("A", "2"), ("B", ""), ("a", "1"), ("a", "10"), ("a", "9"), ("a-b", "x"), ("aa", "&="),
      // As Swift compares text, the first would come last: its accent joins the letter.
      ("e\u{301}", "c"), ("f", "d"), ("é", "e"), ("你", "f"),
    ]
    let encoded =
      "=1&A=2&B=&a=1&a=10&a=9&a-b=x&aa=%26%3D&e%CC%81=c&f=d&%C3%A9=e&%E4%BD%A0=f"
    let plain = "=1&A=2&B=&a=1&a=10&a=9&a-b=x&aa=&=&e\u{301}=c&f=d&é=e&你=f"
    var random = SystemRandomNumberGenerator()
    for order in [sorted, sorted.reversed()] + (0..<20).map({ _ in sorted.shuffled(using: &random) }) {
      let query = CanonicalQuery(order.map { (name: $0.0, value: $0.1) })
      #expect(query.encoded == encoded)
      #expect(Array(query.plain.utf8) == Array(plain.utf8))
    }
    #expect(CanonicalQuery([]).encoded == "")
  }
}
