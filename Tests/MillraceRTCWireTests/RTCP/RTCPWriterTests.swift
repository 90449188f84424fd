import Testing

@testable import MillraceRTCWire

@Suite("RTCP: writer") struct RTCPWriterTests {
  private let info = RTCPSenderInfo(
    ssrc: 1, time: NTPTime(rawValue: 0x0102_0304_0506_0708), timestamp: 9, packets: 10, octets: 11)

  @Test("a compound of report, blocks, name and goodbye is read as it was written")
  func compound() throws {
    let bytes = try rtcpBytes { writer in
      try writer.senderReport(info)
      try writer.add(RTCPReportBlock(ssrc: 2, fractionLost: 3, lost: -4))
      try writer.add(RTCPReportBlock(ssrc: 5, fractionLost: 6, lost: 9_000_000))
      try writer.sourceDescription(ssrc: 1, canonicalName: "mill")
      try writer.goodbye(ssrc: 1, reason: "over")
    }
    #expect(bytes.count == 28 + 48 + 16 + 16)
    #expect(
      rtcpWords(bytes) == ["SR 1 [2 3 -4] [5 6 8388607]", "SDES 1/1=mill", "BYE 1 (over)"])
    #expect(Array(bytes[0..<4]) == [0x82, 200, 0, 18])
  }

  @Test("a sender report has the bytes of RFC 3550, section 6.4.1")
  func senderReport() throws {
    let bytes = try rtcpBytes { try $0.senderReport(info) }
    #expect(
      bytes == [0x80, 200, 0, 6, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 11])
  }

  @Test("a report block has the bytes of RFC 3550, section 6.4.1")
  func block() throws {
    let bytes = try rtcpBytes {
      try $0.receiverReport(ssrc: 1)
      try $0.add(
        RTCPReportBlock(
          ssrc: 0x0203_0405, fractionLost: 6, lost: -2, highest: 0x0708_090A, jitter: 0x0B0C_0D0E,
          lastReport: 0x0F10_1112, delay: 0x1314_1516))
    }
    #expect(
      bytes == [
        0x81, 201, 0, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0xFF, 0xFF, 0xFE, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19,
        20, 21, 22,
      ])
  }

  @Test("names of any length end in one to four zeros", arguments: 0...9)
  func names(_ length: Int) throws {
    let name = String(repeating: "n", count: length)
    let bytes = try rtcpBytes { try $0.sourceDescription(ssrc: 1, canonicalName: name) }
    #expect(bytes.count % 4 == 0)
    let zeros = bytes.count - 10 - length
    #expect((1...4).contains(zeros) && bytes.suffix(zeros).allSatisfy { $0 == 0 })
    #expect(rtcpWords(bytes) == ["SDES 1/1=\(name)"])
  }

  @Test("reasons of any length are padded to words", arguments: 0...9)
  func reasons(_ length: Int) throws {
    let reason = String(repeating: "r", count: length)
    let bytes = try rtcpBytes { try $0.goodbye(ssrc: 1, reason: reason) }
    #expect(bytes.count == 8 + (length == 0 ? 0 : (length + 1 + 3) / 4 * 4))
    #expect(rtcpWords(bytes) == [length == 0 ? "BYE 1" : "BYE 1 (\(reason))"])
  }

  @Test("texts longer than 255 bytes are refused")
  func longTexts() throws {
    #expect(throws: RTCPProblem.textTooLong(bytes: 256)) {
      try rtcpBytes { try $0.goodbye(ssrc: 1, reason: String(repeating: "r", count: 256)) }
    }
    #expect(throws: RTCPProblem.textTooLong(bytes: 256)) {
      try rtcpBytes { try $0.sourceDescription(ssrc: 1, canonicalName: String(repeating: "ü", count: 128)) }
    }
  }

  @Test("a report takes 31 blocks, and only the last packet does")
  func tooManyBlocks() throws {
    let bytes = try rtcpBytes { writer in
      try writer.receiverReport(ssrc: 1)
      for ssrc in 0..<31 as Range<UInt32> { try writer.add(RTCPReportBlock(ssrc: ssrc)) }
      #expect(throws: RTCPProblem.tooManyBlocks) { try add(&writer) }
      try writer.pictureLoss(sender: 1, media: 2)
      #expect(throws: RTCPProblem.tooManyBlocks) { try add(&writer) }
    }
    #expect(bytes.count == 8 + 31 * 24 + 12)
    #expect(rtcpWords(bytes).last == "PLI 1 2")
  }

  private func add(_ writer: inout RTCPWriter) throws { try writer.add(RTCPReportBlock(ssrc: 99)) }

  @Test("what does not fit is refused and leaves what was written before")
  func noRoom() throws {
    let bytes = try rtcpBytes(room: 31) { writer in
      try writer.receiverReport(ssrc: 1)
      var problem: RTCPProblem?
      do throws(RTCPProblem) { try writer.add(RTCPReportBlock(ssrc: 2)) } catch { problem = error }
      #expect(problem == .noRoom(needed: 24, room: 23))
      do throws(RTCPProblem) { try writer.senderReport(info) } catch { problem = error }
      #expect(problem == .noRoom(needed: 28, room: 23))
    }
    #expect(rtcpWords(bytes) == ["RR 1"])
    #expect(bytes.count == 8)
  }

  @Test(
    "requests are packed: the first packet and the 16 after it",
    arguments: [
      ([5], "5", 1), ([5, 6, 21, 22], "5 6 21 22", 2), ([65_535, 0, 15, 16, 40], "65535 0 15 16 40", 3),
      ([7, 7, 8, 8], "7 8", 1), ([1, 18, 35], "1 18 35", 3), ([1, 17], "1 17", 1),
    ] as [([UInt16], String, Int)])
  func nack(_ sequences: [UInt16], _ text: String, _ entries: Int) throws {
    let bytes = try rtcpBytes { try $0.nack(sender: 1, media: 2, sequences: sequences.span) }
    #expect(rtcpWords(bytes) == ["NACK 1 2: \(text)"])
    #expect(bytes.count == 12 + 4 * entries)
  }

  @Test("without packets to request nothing is written")
  func emptyNack() throws {
    #expect(try rtcpBytes { try $0.nack(sender: 1, media: 2, sequences: [UInt16]().span) } == [])
  }

  @Test("key frame requests have the bytes of RFC 4585 and RFC 5104")
  func keyFrames() throws {
    let bytes = try rtcpBytes {
      try $0.pictureLoss(sender: 1, media: 2)
      try $0.fullIntraRequest(sender: 3, media: 4, number: 5)
    }
    #expect(
      bytes == [
        0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2,
        0x84, 206, 0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 5, 0, 0, 0,
      ])
  }

  @Test(
    "an estimate is rounded down to 18 bits",
    arguments: [
      (0, 0), (1, 1), (262_143, 262_143), (262_144, 262_144), (262_145, 262_144), (2_500_000, 2_500_000),
      (1_000_000_001, 999_997_440), (.max, 0xFFFF_C000_0000_0000),
    ] as [(UInt64, UInt64)])
  func estimate(_ bitrate: UInt64, _ wanted: UInt64) throws {
    let sources: [UInt32] = [8, 9]
    let bytes = try rtcpBytes { try $0.bitrateEstimate(sender: 1, bitrate: bitrate, sources: sources.span) }
    #expect(rtcpWords(bytes) == ["REMB 1 \(wanted): 8 9"])
    #expect(bytes.count == 28)
  }

  @Test("a problem says what to do about it")
  func texts() {
    #expect(
      RTCPProblem.noRoom(needed: 24, room: 23).description
        == "the RTCP packet needs 24 bytes, the destination has 23: write it into the next datagram")
    #expect(RTCPProblem.contentCut(type: 200, at: 0).canReadNext)
    #expect(!RTCPProblem.version(1, at: 0).canReadNext)
  }
}
