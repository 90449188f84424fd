import MillraceCrypto
import Testing

@Suite("Digests")
struct DigestTests {
  private let twoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"
  private let million = String(repeating: "a", count: 1_000_000)

  @Test("SHA-256 has the digests of FIPS 180-4's examples")
  func sha256() {
    let examples = [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (twoBlocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
      (million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ]
    for (text, digest) in examples { #expect(SHA256.hash(text.utf8.span) == bytes(digest)) }
  }

  @Test("SHA-1 has the digests of FIPS 180-4's examples")
  func sha1() {
    let examples = [
      ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (twoBlocks, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
      (million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ]
    for (text, digest) in examples { #expect(SHA1.hash(text.utf8.span) == bytes(digest)) }
  }

  @Test("a digest does not depend on how the bytes are split, empty pieces included")
  func pieces() {
    // Three blocks of 64 bytes and a bit.
    let message = (0..<200).map { UInt8($0) }
    let whole = SHA256.hash(message.span)
    for first in 0...message.count {
      for second in stride(from: first, through: message.count, by: 17) {
        var hash = SHA256()
        hash.update(message.span.extracting(0..<first))
        hash.update(message.span.extracting(first..<second))
        hash.update(message.span.extracting(second...))
        #expect(hash.finish() == whole)
      }
    }
  }

  @Test("a copy of a hash continues without changing the original")
  func copies() {
    var hash = SHA256()
    hash.update("ab".utf8.span)
    var copy = hash
    copy.update("x".utf8.span)
    hash.update("c".utf8.span)
    #expect(hash.finish() == SHA256.hash("abc".utf8.span))
    #expect(copy.finish() == SHA256.hash("abx".utf8.span))
  }

  @Test("bytes are equal when all are, and only then")
  func equality() {
    let code = SHA256.hash("abc".utf8.span)
    #expect(areEqual(code, Array(code)))
    for bit in 0..<8 * code.count { #expect(!areEqual(code, code.flipping(bit: bit))) }
    for count in 0..<code.count {
      #expect(!areEqual(code, Array(code.prefix(count))))
      #expect(!areEqual(Array(code.prefix(count)), code))
    }
    #expect(areEqual([], []))
  }
}
