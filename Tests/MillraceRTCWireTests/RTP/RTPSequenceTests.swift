import Testing

@testable import MillraceRTCWire

@Suite("RTP: demultiplexing, unwrapping, window") struct RTPSequenceTests {
  @Test("every first byte has the protocol of RFC 7983")
  func firstBytes() {
    for first in 0...255 as ClosedRange<UInt8> {
      let kind = RTPDemultiplexer.kind(of: [first, 96, 0].span)
      let wanted: RTPDemultiplexer.Kind =
        switch first {
        case 0...3: .stun
        case 20...63: .dtls
        case 64...79: .turnChannel
        case 128...191: .rtp
        default: .unknown
        }
      #expect(kind == wanted, "\(first)")
    }
  }

  @Test("the second byte tells RTCP from RTP, also of marked packets")
  func secondBytes() {
    for second in 0...255 as ClosedRange<UInt8> {
      let kind = RTPDemultiplexer.kind(of: [0x80, second].span)
      #expect(kind == ((192...223).contains(second) ? .rtcp : .rtp), "\(second)")
    }
    #expect(RTPDemultiplexer.kind(of: [0x80].span) == .unknown)
    #expect(RTPDemultiplexer.kind(of: [UInt8]().span) == .unknown)
  }

  @Test("sequence numbers keep counting over wraps and step back when reordered")
  func sequences() {
    var unwrapper = SequenceUnwrapper()
    let numbers: [UInt16] = [65_534, 65_535, 0, 65_533, 1, 32_768, 65_535, 10]
    #expect(
      numbers.map { unwrapper.unwrap($0) } == [
        65_534, 65_535, 65_536, 65_533, 65_537, 98_304, 131_071, 131_082,
      ])
    #expect(unwrapper.guess(9) == 131_081 && unwrapper.highest == 131_082)
    unwrapper.reset()
    #expect(unwrapper.unwrap(2) == 2)
    #expect(unwrapper.unwrap(65_535) == -1)
  }

  @Test("a hundred wraps of sequence numbers give a line")
  func manyWraps() {
    var unwrapper = SequenceUnwrapper()
    for number in stride(from: 0 as Int64, to: 6_553_600, by: 997) {
      #expect(unwrapper.unwrap(UInt16(truncatingIfNeeded: number)) == number)
    }
  }

  @Test("timestamps keep counting over wraps and step back when reordered")
  func timestamps() {
    var unwrapper = TimestampUnwrapper()
    #expect(unwrapper.unwrap(0xFFFF_FF00) == 0xFFFF_FF00)
    #expect(unwrapper.unwrap(0x100) == 0x1_0000_0100)
    #expect(unwrapper.unwrap(0xFFFF_FFFF) == 0xFFFF_FFFF)
    #expect(unwrapper.unwrap(0x8000_0000) == 0x1_8000_0000)
    #expect(unwrapper.highest == 0x1_8000_0000)
  }

  @Test("duplicates are refused, reordered packets are not, old ones are")
  func window() {
    var window = ReceptionWindow()
    #expect(window.note(1_000) == .inOrder)
    #expect(window.note(1_000) == .duplicate)
    #expect(window.note(1_003) == .inOrder)
    #expect(window.note(1_001) == .reordered)
    #expect(window.note(1_001) == .duplicate)
    #expect(window.note(1_003 - 511) == .reordered)
    #expect(window.note(1_003 - 512) == .tooOld)
    #expect(window.note(1_003 + 511) == .inOrder)
    #expect(window.note(1_003) == .duplicate)
    #expect(window.note(1_002) == .tooOld)
    window.reset()
    #expect(window.note(5) == .inOrder)
    #expect(window.note(-5) == .reordered)
  }

  @Test("the window agrees with a set over random packets")
  func windowModel() {
    var (window, random) = (ReceptionWindow(), SeededRandom(seed: 3))
    var (seen, highest): (Set<Int64>, Int64) = ([], 0)
    _ = window.note(0)
    seen.insert(0)
    for _ in 0..<20_000 {
      let number = highest + Int64.random(in: -600...(Bool.random(using: &random) ? 3 : 700), using: &random)
      let wanted: ReceptionWindow.Verdict =
        number > highest
        ? .inOrder : number <= highest - 512 ? .tooOld : seen.contains(number) ? .duplicate : .reordered
      #expect(window.note(number) == wanted)
      if wanted != .tooOld { seen.insert(number) }
      highest = max(highest, number)
    }
  }
}
