import CMediaShim
import Testing

@Suite("JPEG decoding of damaged pictures and of other formats") struct JPEGShellTests {
  private static let side = 32

  /// A JPEG of 4:2:0.
  private func jpeg() throws -> [UInt8] {
    let encoder = try #require(millrace_jpeg_new())
    defer { millrace_jpeg_free(encoder) }
    let planes = (0..<Self.side * Self.side * 3 / 2).map { UInt8(truncatingIfNeeded: $0 * 37) }
    var target = [UInt8](repeating: 0, count: 16_384)
    let count = try planes.withUnsafeBufferPointer { bytes in
      let y = try #require(bytes.baseAddress)
      let u = y + Self.side * Self.side
      var picture = millrace_jpeg_picture(
        width: Int32(Self.side), height: Int32(Self.side), y: y, u: u, v: u + Self.side * Self.side / 4,
        y_stride: Self.side, chroma_stride: Self.side / 2)
      return millrace_jpeg_encode(encoder, &picture, 100, 0, 1, &target, target.count)
    }
    return Array(target[..<Int(count)])
  }

  private func decodes(_ bytes: [UInt8]) -> Bool {
    var planes = [UInt8](repeating: 0, count: Self.side * Self.side * 3 / 2)
    return millrace_jpeg_decode(bytes, bytes.count, Int32(Self.side), Int32(Self.side), &planes) == 0
  }

  /// Where a marker stands, ITU-T T.81 annex B.
  private func place(of marker: UInt8, in bytes: [UInt8]) throws -> Int {
    try #require(bytes.indices.dropLast().first { bytes[$0] == 0xFF && bytes[$0 + 1] == marker })
  }

  @Test("a JPEG decodes, and one of another size does not")
  func whole() throws {
    let bytes = try jpeg()
    #expect(decodes(bytes))
    var planes = [UInt8](repeating: 0, count: 64 * 64 * 2)
    for (width, height) in [(64, 64), (64, 32), (32, 64)] as [(Int32, Int32)] {
      #expect(millrace_jpeg_decode(bytes, bytes.count, width, height, &planes) == -1, "\(width)x\(height)")
    }
  }

  @Test(
    "chroma that is not of half width and height is refused, whichever plane says so", arguments: [1, 2],
    [0x22, 0x12, 0x21, 0x44] as [UInt8])
  func sampling(component: Int, factors: UInt8) throws {
    var bytes = try jpeg()
    // Behind the marker: length, precision, height, width, count; then id, factors and table of each.
    let factor = try place(of: 0xC0, in: bytes) + 2 + 8 + 3 * component + 1
    try #require(bytes[factor] == 0x11)
    bytes[factor] = factors
    #expect(!decodes(bytes))
  }

  @Test("a JPEG that ends early is damaged, though libjpeg fills up what is missing")
  func cut() throws {
    let bytes = try jpeg()
    let scan = try place(of: 0xDA, in: bytes)
    for count in [scan + 20, (scan + bytes.count) / 2, bytes.count - 8] {
      #expect(!decodes(Array(bytes[..<count])), "\(count) of \(bytes.count) bytes")
    }
  }
}
