import Testing

@testable import MillraceRTCWire

@Suite("RTCP: reader") struct RTCPReaderTests {
  /// A packet with a header and this content.
  private func packet(_ type: UInt8, _ format: UInt8, _ content: [UInt8], padding: Bool = false) -> [UInt8] {
    [0x80 | format | (padding ? 0x20 : 0), type, 0, UInt8(content.count / 4)] + content
  }

  private let one: [UInt8] = [0, 0, 0, 1]
  private let two: [UInt8] = [0, 0, 0, 2]

  @Test("a sender report has its information and its blocks")
  func senderReport() throws {
    let bytes = packet(
      200, 1,
      one + [0xB4, 0x4D, 0xB7, 0x05, 0x20, 0, 0, 0] + [0, 0, 0x10, 0] + [0, 0, 0, 5] + [0, 0, 2, 0]
        + two + [64, 0xFF, 0xFF, 0xFE] + [0, 1, 0, 9] + [0, 0, 0, 80] + [0xB7, 0x05, 0x20, 0] + [
          0, 5, 0x40, 0,
        ])
    var reader = RTCPReader(bytes.span)
    guard case .senderReport(let report) = try reader.next() else {
      Issue.record("no sender report")
      return
    }
    let (info, block, none) = (report.info, report.blocks.block(about: 2), report.blocks.block(about: 3))
    #expect(
      info
        == RTCPSenderInfo(
          ssrc: 1, time: NTPTime(rawValue: 0xB44D_B705_2000_0000), timestamp: 4_096, packets: 5, octets: 512))
    #expect(
      block
        == RTCPReportBlock(
          ssrc: 2, fractionLost: 64, lost: -2, highest: 65_545, jitter: 80, lastReport: 0xB705_2000,
          delay: 0x0005_4000))
    #expect(none == nil)
    let end = try reader.next() == nil
    #expect(end)
  }

  @Test("a compound is read packet by packet, unknown ones are named with their place")
  func compound() {
    let bytes =
      packet(201, 0, one) + packet(202, 1, one + [1, 2, 0x61, 0x62, 0, 0, 0, 0])
      + packet(204, 3, one + [0x41, 0x42, 0x43, 0x44])
      + packet(205, 3, one + two + two) + packet(206, 15, one + two + [0x41, 0x42, 0x43, 0x44] + two)
      + packet(207, 0, []) + packet(203, 1, one)
    #expect(
      rtcpWords(bytes) == [
        "RR 1", "SDES 1/1=ab", "other 204/3 24..<36", "other 205/3 36..<52", "other 206/15 52..<72",
        "other 207/0 72..<76", "BYE 1",
      ])
  }

  @Test("a single feedback packet is accepted: reduced size")
  func reducedSize() {
    #expect(rtcpWords(packet(206, 1, one + two)) == ["PLI 1 2"])
    #expect(rtcpWords([]) == [])
  }

  @Test("descriptions of several sources with several items are read")
  func sourceDescription() {
    // Names of 1, 2 and 0 bytes; a chunk of a source without items.
    let bytes = packet(
      202, 3, one + [1, 1, 0x61, 2, 2, 0x62, 0x63, 0] + two + [0, 0, 0, 0] + one + [1, 0, 0, 0])
    #expect(rtcpWords(bytes) == ["SDES 1/1=a 1/2=bc 1/1="])
    var reader = RTCPReader(bytes.span)
    guard case .sourceDescription(let description)? = try? reader.next() else {
      Issue.record("no description")
      return
    }
    let names = [description.canonicalName(of: 1), description.canonicalName(of: 2)]
    #expect(names == ["a", nil])
  }

  @Test(
    "descriptions that are cut are refused",
    arguments: [
      (1, [0, 0, 0, 1]), (1, [0, 0, 0, 1, 1, 3, 0x61, 0]), (1, [0, 0, 0, 1, 1, 2, 0x61, 0x62]),
      (2, [0, 0, 0, 1, 0, 0, 0, 0]), (31, [0, 0, 0, 1, 0, 0, 0, 0]), (1, []),
      (1, [0, 0, 0, 1, 1, 1, 0x61, 1]),
    ] as [(UInt8, [UInt8])])
  func cutDescriptions(_ count: UInt8, _ chunks: [UInt8]) {
    #expect(rtcpWords(packet(202, count, chunks)) == ["\(RTCPProblem.contentCut(type: 202, at: 0))"])
  }

  @Test("sources that leave are read with and without a reason")
  func goodbye() {
    #expect(rtcpWords(packet(203, 0, [])) == ["BYE"])
    #expect(rtcpWords(packet(203, 2, one + two)) == ["BYE 1 2"])
    #expect(rtcpWords(packet(203, 1, one + [3, 0x65, 0x6E, 0x64])) == ["BYE 1 (end)"])
    #expect(rtcpWords(packet(203, 1, one + [2, 0xFF, 0x6E, 0])) == ["BYE 1 (\u{FFFD}n)"])
    #expect(rtcpWords(packet(203, 1, one + [0, 0, 0, 0])) == ["BYE 1"])
    let cut = ["\(RTCPProblem.contentCut(type: 203, at: 0))"]
    #expect(rtcpWords(packet(203, 1, one + [4, 0x65, 0x6E, 0x64])) == cut)
    #expect(rtcpWords(packet(203, 3, one + two)) == cut)
  }

  @Test("requested packets are given with the 16 after each")
  func nack() {
    let bytes = packet(205, 1, one + two + [0xFF, 0xFE, 0x80, 0x03] + [0, 100, 0, 0])
    #expect(rtcpWords(bytes) == ["NACK 1 2: 65534 65535 0 14 100"])
    #expect(rtcpWords(packet(205, 1, one + two)) == ["\(RTCPProblem.contentCut(type: 205, at: 0))"])
  }

  @Test("key frame requests and estimates are read")
  func payloadFeedback() {
    #expect(
      rtcpWords(packet(206, 4, one + [0, 0, 0, 0] + two + [7, 0, 0, 0] + one + [9, 0, 0, 0])) == [
        "FIR 1: 2/7 1/9"
      ])
    let remb: [UInt8] = one + [0, 0, 0, 0] + [0x52, 0x45, 0x4D, 0x42]
    // Mantissa 0x2007B, exponent 3: 131,195 times 8.
    #expect(rtcpWords(packet(206, 15, remb + [1, 0x0E, 0x00, 0x7B] + two)) == ["REMB 1 \(0x2007B * 8): 2"])
    #expect(
      rtcpWords(packet(206, 15, remb + [0, 0xFF, 0xFF, 0xFF])) == [
        "\(RTCPProblem.contentInvalid(type: 206, at: 0))"
      ])
    #expect(
      rtcpWords(packet(206, 15, remb + [2, 0, 0, 0] + two)) == ["\(RTCPProblem.contentCut(type: 206, at: 0))"]
    )
    #expect(rtcpWords(packet(206, 4, one + two)) == ["\(RTCPProblem.contentCut(type: 206, at: 0))"])
    #expect(rtcpWords(packet(206, 1, one)) == ["\(RTCPProblem.contentCut(type: 206, at: 0))"])
  }

  @Test("a packet that claims 65,535 words is refused, and nothing after it is read")
  func longPacket() {
    let bytes = packet(201, 0, one) + [0x80, 201, 0xFF, 0xFF] + one + packet(201, 0, two)
    #expect(
      rtcpWords(bytes) == ["RR 1", "the RTCP packet at byte 8 has 262144 bytes, 16 remain of the datagram"])
  }

  @Test("the rest of a datagram that is no header, and another version, are refused")
  func noHeader() {
    #expect(rtcpWords([0x80]) == ["\(RTCPProblem.headerCut(at: 0, bytes: 1))"])
    #expect(
      rtcpWords(packet(201, 0, one) + [0x80, 201, 0]) == [
        "RR 1", "\(RTCPProblem.headerCut(at: 8, bytes: 3))",
      ])
    #expect(rtcpWords([0x40, 201, 0, 1] + one) == ["\(RTCPProblem.version(1, at: 0))"])
  }

  @Test("reports that claim more blocks than there are, are refused, and the next packet is read")
  func blocks() {
    let cut = packet(201, 31, one + [UInt8](repeating: 0, count: 24)) + packet(203, 1, two)
    #expect(rtcpWords(cut) == ["\(RTCPProblem.contentCut(type: 201, at: 0))", "BYE 2"])
    #expect(rtcpWords(packet(200, 0, one)) == ["\(RTCPProblem.contentCut(type: 200, at: 0))"])
    #expect(rtcpWords(packet(201, 0, [])) == ["\(RTCPProblem.contentCut(type: 201, at: 0))"])
    // Bytes after the blocks are an extension of a profile.
    #expect(rtcpWords(packet(201, 0, one + two)) == ["RR 1"])
  }

  @Test("padding is cut off, and refused where it is not possible")
  func padding() {
    #expect(rtcpWords(packet(206, 1, one + two + [0, 0, 0, 4], padding: true)) == ["PLI 1 2"])
    #expect(rtcpWords(packet(205, 1, one + two + one + [0, 0, 0, 4], padding: true)) == ["NACK 1 2: 0 1"])
    for last in [0, 9, 255] as [UInt8] {
      let bytes = packet(201, 0, [0, 0, 0, 1, 0, 0, 0, last], padding: true)
      #expect(rtcpWords(bytes) == ["\(RTCPProblem.padding(last, at: 0))"])
    }
    #expect(rtcpWords(packet(201, 0, [], padding: true)) == ["\(RTCPProblem.padding(0, at: 0))"])
  }

  @Test("random bytes are read to their end or refused")
  func hostile() {
    var random = SeededRandom(seed: 8)
    var read = 0
    for _ in 0..<20_000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let words = Int.random(in: 0...12, using: &random)
        let claimed = UInt8(max(0, words + (random.next() % 16 == 0 ? 1 : 0)))
        let format = [random.next() % 32, 1, 15, 4, 2].randomElement(using: &random)!
        let type = UInt8.random(in: 199...207, using: &random)
        var content = random.bytes(4 * words)
        if words > 3, type == 206, format == 15 {
          content.replaceSubrange(8..<12, with: [0x52, 0x45, 0x4D, 0x42])
        }
        bytes += [0x80 | UInt8(format) | (random.next() % 8 == 0 ? 0x20 : 0), type, 0, claimed] + content
      }
      if random.next() % 8 == 0 { bytes.removeLast(min(bytes.count, Int(random.next() % 4))) }
      let words = rtcpWords(bytes)
      #expect(words.count <= 3 + 12 * 3)
      read += words.count { !$0.hasPrefix("the ") && !$0.hasPrefix("an ") }
    }
    #expect(read > 10_000)
    for _ in 0..<20_000 {
      let bytes = random.bytes(Int.random(in: 0...64, using: &random))
      #expect(rtcpWords(bytes).count <= 17)
    }
  }
}
