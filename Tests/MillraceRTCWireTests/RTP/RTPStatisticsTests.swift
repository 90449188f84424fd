import Testing

@testable import MillraceRTCWire

@Suite("RTP: statistics") struct RTPStatisticsTests {
  private func statistics(probation: Int = 0, clockRate: Int = 8_000) -> RTPReceiverStatistics {
    RTPReceiverStatistics(ssrc: 7, clockRate: clockRate, probation: probation)
  }

  private func block(_ source: inout RTPReceiverStatistics, at now: Int64) throws -> RTCPReportBlock {
    let block = source.reportBlock(at: now)
    return try #require(block)
  }

  @Test("a new source is valid with its second packet in sequence")
  func probation() {
    var source = statistics(probation: RTPReceiverStatistics.probationPackets)
    let verdicts = [10, 12, 500, 501, 502].map { source.note(rtpHeader($0), at: 0) }
    #expect(verdicts == [.probation, .probation, .probation, .valid, .valid])
    #expect(source.packets == 2 && source.expected == 2 && source.extendedHighest == 502)
    var silent = statistics(probation: 2)
    _ = silent.note(rtpHeader(1), at: 0)
    let block = silent.reportBlock(at: 0)
    #expect(block == nil)
  }

  @Test("lost packets are counted in all, and as a fraction since the last report")
  func loss() throws {
    var source = statistics()
    for sequence in [0, 1, 2, 5, 6, 7, 8, 9] as [UInt16] { _ = source.note(rtpHeader(sequence), at: 0) }
    #expect(source.expected == 10 && source.lost == 2 && source.packetsSinceReport == 8)
    let first = try block(&source, at: 0)
    // 2 of 10: 51.2 of 256.
    #expect(first.fractionLost == 51 && first.lost == 2 && first.highest == 9 && first.ssrc == 7)
    for sequence in 10...19 as ClosedRange<UInt16> { _ = source.note(rtpHeader(sequence), at: 0) }
    let second = try block(&source, at: 0)
    #expect(second.fractionLost == 0 && second.lost == 2 && second.highest == 19)
    #expect(source.packetsSinceReport == 0)
  }

  @Test("duplicates make the loss negative, as RFC 3550 has it, and the fraction zero")
  func duplicates() throws {
    var source = statistics()
    for sequence in [1, 2, 2, 2, 3] as [UInt16] { #expect(source.note(rtpHeader(sequence), at: 0) == .valid) }
    #expect(source.lost == -2)
    let block = try block(&source, at: 0)
    #expect(block.lost == -2 && block.fractionLost == 0)
  }

  @Test("the highest sequence number counts wraps, and reordered packets do not lower it")
  func wraps() {
    var source = statistics()
    for sequence in [65_534, 65_535, 1, 0, 2] as [UInt16] { _ = source.note(rtpHeader(sequence), at: 0) }
    #expect(source.extendedHighest == 0x1_0002)
    #expect(source.expected == 5 && source.lost == 0)
  }

  @Test("a packet 511 numbers back is reordered, one 513 back is stray")
  func misorder() {
    var source = statistics()
    let verdicts = [1_000, 489, 487].map { source.note(rtpHeader($0), at: 0) }
    #expect(verdicts == [.valid, .valid, .stray])
    #expect(source.packets == 2)
  }

  @Test("a step of 2,999 numbers is loss, one of 3,000 is stray")
  func dropout() {
    var source = statistics()
    let verdicts = [0, 2_999, 5_999].map { source.note(rtpHeader($0), at: 0) }
    #expect(verdicts == [.valid, .valid, .stray])
    #expect(source.lost == 2_998)
  }

  @Test("after a jump the second packet in sequence restarts the counts, a single stray packet does not")
  func restart() {
    var source = statistics()
    let sequences: [UInt16] = [1, 2, 30_000, 3, 30_001, 40_000, 40_001, 40_002]
    let verdicts = sequences.map { source.note(rtpHeader($0), at: 0) }
    #expect(verdicts == [.valid, .valid, .stray, .valid, .stray, .stray, .restarted, .valid])
    #expect(source.packets == 2 && source.expected == 2 && source.lost == 0 && source.restarts == 1)
    #expect(source.extendedHighest == 40_002)
  }

  @Test("the jitter follows the formula of RFC 3550, in timestamp units")
  func jitter() {
    var source = statistics()
    // A packet each 20 ms of 160 units; the third is 5 ms late, 40 units, the fourth in time.
    let arrivals: [Int64] = [1_000, 1_020, 1_045, 1_060]
    var jitters: [UInt32] = []
    for (index, arrival) in arrivals.enumerated() {
      _ = source.note(rtpHeader(UInt16(index), UInt32(index) * 160 &- 200), at: arrival * millisecond)
      jitters.append(source.jitter)
    }
    // 16 J: 0, 0, 40, then 40 + 40 - (40 + 8) / 16 = 77.
    #expect(jitters == [0, 0, 2, 4])
    #expect(source.jitterNanoseconds == 500_000)
  }

  @Test("the jitter is rounded as in RFC 3550, appendix A.8")
  func roundedJitter() {
    var source = statistics()
    for index in 0..<200 as Range<Int64> {
      // Each second packet is 7 units late.
      _ = source.note(
        rtpHeader(UInt16(index), UInt32(index * 160 - index % 2 * 7 + 7)), at: index * 20 * millisecond)
    }
    // 16 J stays where (16 J + 8) / 16 is 7, at 104.
    #expect(source.jitter == 6)
  }

  @Test("the jitter of alternating delays approaches their difference")
  func steadyJitter() {
    var source = statistics(clockRate: 48_000)
    for index in 0..<2_000 as Range<Int64> {
      let late = index % 2 * 3 * millisecond
      _ = source.note(rtpHeader(UInt16(index), UInt32(index * 960)), at: index * 20 * millisecond + late)
    }
    #expect((140...144).contains(source.jitter))
  }

  @Test("a clock that jumps is no jitter")
  func clockJump() {
    var source = statistics()
    _ = source.note(rtpHeader(1, 0), at: 0)
    _ = source.note(rtpHeader(2, 0x7000_0000), at: 20 * millisecond)
    _ = source.note(rtpHeader(3, 0x7000_00A0), at: 40 * millisecond)
    #expect(source.jitter == 0)
  }

  @Test("a report block names the last sender report and the time since")
  func lastReport() throws {
    var source = statistics()
    _ = source.note(rtpHeader(1), at: 0)
    let before = try block(&source, at: 5)
    #expect(before.lastReport == 0 && before.delay == 0)
    source.noteSenderReport(NTPTime(rawValue: 0xB44D_B705_2000_0000), at: 10 * second)
    let block = try block(&source, at: 15 * second + second / 4)
    // The example of RFC 3550, section 6.4.1: LSR 0xB705:2000, DLSR 5.25 s.
    #expect(block.lastReport == 0xB705_2000 && block.delay == 0x0005_4000)
  }

  // MARK: Sender

  @Test("the round trip of RFC 3550's example is 6.125 s")
  func roundTrip() throws {
    var sender = RTPSenderStatistics(ssrc: 7, clockRate: 8_000)
    sender.note(timestamp: 100, payloadBytes: 160, at: 0)
    _ = sender.senderReport(NTPTime(rawValue: 0xB44D_B705_2000_0000), at: second)
    let block = RTCPReportBlock(
      ssrc: 7, fractionLost: 64, lost: 5, jitter: 80, lastReport: 0xB705_2000, delay: 0x0005_4000)
    // Received at 0xB710:8000, which is 11.375 s after the report.
    sender.note(block, at: second + 11_375 * millisecond)
    #expect(sender.roundTrip == 6_125 * millisecond)
    #expect(sender.smoothedRoundTrip == 6_125 * millisecond)
    #expect(sender.remoteLoss == 0.25 && sender.remoteLost == 5)
    #expect(sender.remoteJitter == 10 * millisecond)
  }

  @Test("a block about another source, or that answers no report, measures no round trip")
  func strangeBlocks() {
    var sender = RTPSenderStatistics(ssrc: 7, clockRate: 8_000)
    sender.note(timestamp: 100, payloadBytes: 160, at: 0)
    _ = sender.senderReport(NTPTime(rawValue: 0x0000_0001_0002_0000), at: 0)
    sender.note(RTCPReportBlock(ssrc: 8, lastReport: 0x0001_0002), at: second)
    #expect(sender.remote == nil && sender.roundTrip == nil)
    sender.note(RTCPReportBlock(ssrc: 7, lastReport: 0), at: second)
    sender.note(RTCPReportBlock(ssrc: 7, lastReport: 0x0001_0003), at: second)
    sender.note(RTCPReportBlock(ssrc: 7, lastReport: 0x0001_0002, delay: .max), at: second)
    #expect(sender.roundTrip == nil)
    // A delay that is 5 ms too long, by the drift of the clocks.
    sender.note(
      RTCPReportBlock(
        ssrc: 7, lastReport: 0x0001_0002, delay: NTPTime.short(nanoseconds: second + 5 * millisecond)),
      at: second)
    #expect(sender.roundTrip == 0)
  }

  @Test("the round trip of any of the last 16 reports is measured, and smoothed by an eighth")
  func manyReports() {
    var sender = RTPSenderStatistics(ssrc: 7, clockRate: 8_000)
    sender.note(timestamp: 0, payloadBytes: 1, at: 0)
    for index in 1...40 as ClosedRange<UInt64> {
      _ = sender.senderReport(NTPTime(rawValue: index << 32), at: Int64(index) * second)
    }
    sender.note(RTCPReportBlock(ssrc: 7, lastReport: 24 << 16), at: 24 * second + 80)
    #expect(sender.roundTrip == nil)
    sender.note(RTCPReportBlock(ssrc: 7, lastReport: 25 << 16), at: 25 * second + 80)
    sender.note(RTCPReportBlock(ssrc: 7, lastReport: 40 << 16), at: 40 * second + 160)
    #expect(sender.roundTrip == 160 && sender.smoothedRoundTrip == 90)
  }

  @Test("a sender report has the counts, and the timestamp of its own time")
  func senderReport() throws {
    var sender = RTPSenderStatistics(ssrc: 7, clockRate: 48_000)
    let none = sender.senderReport(NTPTime(rawValue: 1), at: 0)
    #expect(none == nil)
    sender.note(timestamp: 0xFFFF_FFF0, payloadBytes: 100, at: second)
    sender.note(timestamp: 0xFFFF_FFFF, payloadBytes: 50, at: second)
    #expect(sender.packetsSinceReport == 2)
    let report = sender.senderReport(NTPTime(rawValue: 1), at: second + 10 * millisecond)
    let info = try #require(report)
    #expect(
      info == RTCPSenderInfo(ssrc: 7, time: NTPTime(rawValue: 1), timestamp: 479, packets: 2, octets: 150))
    #expect(sender.packetsSinceReport == 0)
  }
}
