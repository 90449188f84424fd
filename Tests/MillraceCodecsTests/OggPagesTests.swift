@testable import MillraceCodecs
import Testing

@Suite("Ogg pages") struct OggPagesTests {
  /// Feeds bytes in pieces; returns the steps, and how many bytes were checksummed in vain.
  private func read(_ bytes: [UInt8], cut: Int) -> (pages: Int, skipped: Int, leftOver: Int, refused: Int) {
    var pages = OggPages()
    var (found, skipped, start) = (0, 0, 0)
    while true {
      switch pages.next() {
      case .page: found += 1
      case .skipped(let count): skipped += count
      case .needsMore:
        guard start < bytes.count else { return (found, skipped, pages.leftOver, pages.refusedCount) }
        let end = min(start + cut, bytes.count)
        pages.feed(bytes[start..<end].span)
        start = end
      case .end, .failed: return (found, skipped, pages.leftOver, pages.refusedCount)
      }
    }
  }

  private func page(_ body: [UInt8], granule: Int64) -> [UInt8] {
    var pager = OggPager(serial: 1)
    pager.add(body.span, granule: granule, isFirst: false, isLast: false)
    var result: [UInt8] = []
    while pager.cutPage(isForced: true) { result += Array(pager.header) + Array(pager.body) }
    return result
  }

  @Test(
    "false headers of large pages every few bytes have bounded cost",
    arguments: [4_096, 1 << 20])
  func falsePages(cut: Int) {
    // Each claims up to 255 segments of 255 bytes, so that the next one starts inside it.
    let bytes = Array(repeating: Array("OggS".utf8) + [0xFF, 0xFF, 0xFF], count: 300_000).flatMap(\.self)
    let real = page([1, 2, 3], granule: 960)
    let result = read(bytes + Array(repeating: real, count: 4_000).flatMap(\.self), cut: cut)
    #expect(result.refused < 6 * bytes.count)
    // Valid pages after them are found.
    #expect(result.pages > 1_000)
  }

  @Test("pages after damaged ones are found")
  func damagedPages() {
    var bytes: [UInt8] = []
    for index in 0..<1_000 {
      var page = page([UInt8](repeating: 7, count: 2_000), granule: Int64(index) * 960)
      if index % 2 == 0 { page[100] ^= 1 }
      bytes += page
    }
    let result = read(bytes, cut: 1_000)
    #expect(result.pages == 500 && result.leftOver == 0)
    #expect(result.skipped == bytes.count / 2 && result.refused == bytes.count / 2)
  }
}
