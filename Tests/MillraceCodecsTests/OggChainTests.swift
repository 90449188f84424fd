@testable import MillraceCodecs
import Testing

@Suite("positions in chained Ogg streams") struct OggChainTests {
  /// 20 ms of Opus: fullband CELT, one frame of one channel (RFC 6716 section 3.1).
  private static let packet: [UInt8] = [0xF8, 1, 2, 3]

  /// A stream with its headers; each page has one packet and the given end position.
  private func stream(serial: Int32, preSkip: Int = 312, ends: [Int64]) -> [UInt8] {
    var pager = OggPager(serial: serial)
    var result: [UInt8] = []
    func add(_ bytes: [UInt8], _ granule: Int64, isFirst: Bool = false, isLast: Bool = false) {
      pager.add(bytes.span, granule: granule, isFirst: isFirst, isLast: isLast)
      while pager.cutPage(isForced: true) { result += Array(pager.header) + Array(pager.body) }
    }
    add(OpusHeader(channels: 1, preSkip: preSkip, inputRate: 48_000).bytes, 0, isFirst: true)
    add(OpusHeader.tags(vendor: "", comments: []), 0)
    for (index, end) in ends.enumerated() { add(Self.packet, end, isLast: index == ends.count - 1) }
    return result
  }

  /// The audible range of each packet.
  private func heard(_ bytes: [UInt8]) -> [Range<Int64>] {
    var demuxer = OpusDemuxer()
    demuxer.feed(bytes.span)
    var result: [Range<Int64>] = []
    while true {
      switch demuxer.next() {
      case .packet(let packet):
        let start = packet.position + Int64(packet.trimStart)
        let end = packet.position + Int64(packet.samples - packet.trimEnd)
        #expect(start <= end, "a packet gives away more than it has")
        result.append(start..<max(start, end))
      case .opened, .damage, .cut: continue
      case .end, .failed, .needsMore: return result
      }
    }
  }

  @Test("a last page that ends before the previous one trims nothing already emitted")
  func endBeforeItsBeginning() {
    let heard = heard(stream(serial: 1, ends: [960, 1_920, 500]) + stream(serial: 2, ends: [960, 1_920]))
    #expect(heard.count == 5)
    #expect(heard[2].isEmpty)
    // The second stream's pre-skip is inaudible; its audio follows the first stream's.
    #expect(heard[3].lowerBound == heard[1].upperBound)
    #expect(heard[4].lowerBound == heard[3].upperBound)
  }

  @Test("no sample counts as both pre-skip and padding")
  func skipMeetsPadding() {
    // The second stream is one packet of 960 samples that ends at 100: its pre-skip and its padding overlap.
    for preSkip in [312, 900, 17_000] {
      let heard = heard(stream(serial: 1, ends: [960]) + stream(serial: 2, preSkip: preSkip, ends: [100]))
      #expect(heard.count == 2)
      #expect(heard.last?.isEmpty == true, "pre-skip \(preSkip)")
    }
  }
}
