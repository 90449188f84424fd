import MillraceJSON
import TestSystem
import Testing

@Suite("Base64") struct Base64Tests {
  @Test(
    "encodes and decodes the examples of RFC 4648 section 10",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func examples(text: String, code: String) {
    #expect(Base64.encode(Array(text.utf8)) == code)
    #expect(Base64.decode(code) == Array(text.utf8))
  }

  @Test("bytes of every length come back as they were")
  func roundTrip() {
    var dice = Dice(seed: 1)
    for count in 0...260 {
      let bytes = (0..<count).map { _ in UInt8(dice.below(256)) }
      #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    }
  }

  @Test(
    "what is not strict Base64 is refused: a wrong length, padding, alphabet or line breaks, and bits that encode nothing",
    arguments: [
      "Z", "Zg", "Zg=", "Zm9vYg=", "=", "====", "Zg==Zg==", "Z===", "Zm9v\n", "Zm9_", "Zm-v", "Zh==", "Zm9=",
      "Zm9v Zm9v", "Zäg=",
    ])
  func refused(code: String) { #expect(Base64.decode(code) == nil) }
}
