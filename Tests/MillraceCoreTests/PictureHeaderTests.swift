import MillraceCore
import Testing

@Suite("picture header")
struct PictureHeaderTests {
  private func size(_ bytes: [UInt8]) -> [Int]? { PictureHeader(bytes.span).map { [$0.width, $0.height] } }

  /// A progressive JPEG after an application segment with a thumbnail.
  private static let jpeg: [UInt8] =
    [0xFF, 0xD8, 0xFF, 0xE1, 0, 16, 0xFF, 0xD8, 0xFF, 0xC0, 0, 17, 8, 0, 1, 0, 1, 3, 0, 0]
    + [0xFF, 0xC4, 0, 4, 1, 2, 0xFF, 0xFF, 0xC2, 0, 17, 8, 0xFF, 0xDC, 0x4E, 0x20, 3, 0, 0, 0]
  private static let png: [UInt8] =
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
    + [0, 0, 0x75, 0x30, 0, 0, 0x9C, 0x40, 8, 2, 0, 0, 0]
  private static let gif: [UInt8] = Array("GIF89a".utf8) + [0x30, 0x75, 0x40, 0x9C, 0, 0, 0]

  private static func webP(_ kind: String, _ body: [UInt8]) -> [UInt8] {
    Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBPVP8\(kind)".utf8) + [0, 0, 0, 0] + body
      + [UInt8](repeating: 0, count: 12)
  }

  @Test("the size is read from JPEG, PNG, GIF and all kinds of WebP")
  func kinds() {
    #expect(size(Self.jpeg) == [20_000, 65_500])
    #expect(size(Self.png) == [30_000, 40_000])
    #expect(size(Self.gif) == [30_000, 40_000])
    #expect(size(Self.webP("X", [0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 1])) == [65_536, 65_537])
    #expect(size(Self.webP("L", [0x2F, 0xFF, 0xFF, 0xFF, 0x0F])) == [16_384, 16_384])
    #expect(size(Self.webP(" ", [0, 0, 0, 0x9D, 1, 0x2A, 0xD0, 0x47, 0x0A, 0x40])) == [2_000, 10])
  }

  @Test("any size is accepted, even one whose pixel count overflows")
  func beyondNumbers() throws {
    var bytes = Self.png
    for place in 16..<24 { bytes[place] = 0xFF }
    let found = PictureHeader(bytes.span)
    let header = try #require(found)
    #expect([header.width, header.height] == [0xFFFF_FFFF, 0xFFFF_FFFF])
    #expect(header.pixels == .max)
  }

  @Test("other, truncated or corrupted data has no size, and nothing is read beyond the bytes")
  func anything() {
    let all = [Self.jpeg, Self.png, Self.gif, Self.webP("X", []), Self.webP("L", []), Self.webP(" ", [])]
    for bytes in all {
      for count in 0..<bytes.count { _ = size(Array(bytes.prefix(count))) }
      for place in bytes.indices {
        for value in [UInt8(0), 0x7F, 0xFF] {
          var changed = bytes
          changed[place] = value
          if let size = size(changed) { #expect(size[0] > 0 && size[1] > 0) }
        }
      }
    }
    #expect(size([]) == nil && size(Array("RIFF....WAVEfmt ..................".utf8)) == nil)
    #expect(size([0xFF, 0xD8] + [UInt8](repeating: 0xFF, count: 5_000)) == nil)
  }
}
