import Testing

@testable import MillraceRTCWire

@Suite("Fingerprints and keys in descriptions")
struct SDPSecurityTests {
  @Test(
    "a fingerprint of each algorithm is read in any case and written in capitals",
    arguments: CertificateFingerprint.Algorithm.allCases)
  func algorithms(algorithm: CertificateFingerprint.Algorithm) throws {
    let digest = (0..<algorithm.bytes).map { UInt8($0 * 7 & 255) }
    let fingerprint = try #require(CertificateFingerprint(algorithm, digest: digest))
    #expect(CertificateFingerprint(parsing: fingerprint.text) == fingerprint)
    #expect(CertificateFingerprint(parsing: fingerprint.text.lowercased()) == fingerprint)
    #expect(CertificateFingerprint(parsing: fingerprint.text.uppercased()) == fingerprint)
    #expect(fingerprint.isStrong == (algorithm != .sha1 && algorithm != .sha224))
  }

  @Test(
    "a fingerprint of another form is none",
    arguments: [
      "", "sha-256", "md5 AB:CD", "sha-256 \(SDPSamples.digest):AB",
      "sha-256 \(SDPSamples.digest.dropLast())",
      "sha-1 \(SDPSamples.digest)", "sha-256 \(SDPSamples.digest) x",
      "sha-256 \(SDPSamples.digest.dropLast(2))0g",
      "sha-256 \(SDPSamples.digest.dropLast(3)):+1",
    ])
  func notAFingerprint(text: String) { #expect(CertificateFingerprint(parsing: text) == nil) }

  @Test("only all bytes of the same algorithm match")
  func comparison() throws {
    let fingerprint = try #require(CertificateFingerprint(parsing: "sha-256 \(SDPSamples.digest)"))
    let matches = { (digest: [UInt8]) in fingerprint.matches(digest.span) }
    #expect(matches(fingerprint.digest))
    for index in 0..<32 {
      var other = fingerprint
      other.digest[index] ^= 0x80
      #expect(!fingerprint.matches(other))
    }
    #expect(!matches(fingerprint.digest.dropLast()) && !matches([]) && !matches(fingerprint.digest + [0]))
    var named = fingerprint
    named.algorithm = .sha512
    #expect(!named.matches(fingerprint))
    #expect(CertificateFingerprint(.sha256, digest: [1, 2, 3]) == nil)
  }

  @Test("the key of RFC 4568, section 6.1, is read with lifetime and MKI")
  func key() throws {
    let value = "1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20|1:4 KDR=1"
    let crypto = try #require(SDPCrypto(parsing: value[...]))
    #expect(crypto.tag == 1 && crypto.suite == .aesCM128SHA180 && crypto.sessionParameters == "KDR=1")
    #expect(crypto.key == Array("wDfvg&T+)xG7@fb5jU,RaA}\\|p0%*#".utf8))
    #expect(crypto.text == value)
  }

  @Test("a key of each suite is written and read", arguments: SDPCrypto.Suite.allCases)
  func suites(suite: SDPCrypto.Suite) throws {
    let key = (0..<suite.keyBytes).map { UInt8($0 * 9 & 255) }
    let crypto = try #require(SDPCrypto(tag: 2, suite, key: key))
    #expect(SDPCrypto(parsing: crypto.text[...])?.key == key)
    #expect(SDPCrypto(suite, key: key + [0]) == nil)
  }

  @Test(
    "a key of another length, method or suite is none",
    arguments: [
      "1 AES_CM_128_HMAC_SHA1_80 inline:AAAA", "1 AES_CM_128_HMAC_SHA1_80 uri:AAAA",
      "1 AES_CM_128_HMAC_SHA1_80 inline:****", "1 NULL inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj",
      "1 AES_CM_128_HMAC_SHA1_80 inline",
    ])
  func badKeys(value: String) { #expect(SDPCrypto(parsing: value[...])?.key == nil) }

  @Test("a key without its padding is read")
  func unpadded() {
    let key = [UInt8](repeating: 200, count: 46)
    let value = SDPCrypto(.aesCM256SHA180, key: key)?.text.replacing("=", with: "") ?? ""
    #expect(!value.contains("=") && SDPCrypto(parsing: value[...])?.key == key)
  }
}
