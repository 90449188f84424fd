import Testing

@testable import MillraceRTCWire

@Suite("RTP: header") struct RTPHeaderTests {
  @Test("a packet with sources, extension, payload and padding is taken apart")
  func parts() throws {
    let packet: [UInt8] = [
      0xB1, 0xE0, 0x12, 0x34, 0xDE, 0xAD, 0xBE, 0xEF, 0x01, 0x02, 0x03, 0x04,
      0x0A, 0x0B, 0x0C, 0x0D,
      0xBE, 0xDE, 0x00, 0x01, 0x10, 0xAA, 0x00, 0x00,
      1, 2, 3, 0, 2,
    ]
    let header = try RTPHeader(parsing: packet.span)
    #expect(header.marker && header.payloadType == 96)
    #expect(header.sequence == 0x1234 && header.timestamp == 0xDEAD_BEEF && header.ssrc == 0x0102_0304)
    #expect(header.contributorCount == 1)
    #expect(header.contributor(0, in: packet.span) == 0x0A0B_0C0D)
    #expect(header.contributor(1, in: packet.span) == nil)
    #expect(header.extensionKind == .oneByte && header.extensionRange == 20..<24)
    #expect(header.payload == 24..<27 && header.padding == 2)
  }

  @Test("any size from the header on is accepted", arguments: [12, 13, 1_500, 65_000])
  func sizes(_ size: Int) throws {
    let packet = rtpPacket(sequence: 1, payload: [UInt8](repeating: 5, count: size - 12))
    #expect(try RTPHeader(parsing: packet.span).payload == 12..<size)
  }

  @Test("what is too short is refused", arguments: [0, 1, 2, 11])
  func short(_ size: Int) {
    let packet = [UInt8](rtpPacket(sequence: 1)[0..<size])
    #expect(throws: RTPProblem.tooShort(bytes: size)) { try RTPHeader(parsing: packet.span) }
  }

  @Test(
    "lengths that reach beyond the end are refused",
    arguments: [
      ([0x40], 0, RTPProblem.version(1)),
      ([0x8F], 8, .contributorsBeyondEnd(needed: 72, bytes: 20)),
      ([0x90], 3, .extensionBeyondEnd(needed: 16, bytes: 15)),
      ([0x91], 4, .extensionBeyondEnd(needed: 20, bytes: 16)),
      ([0xA0], 0, .paddingBeyondPayload(padding: 0, payload: 0)),
      ([0xA0], 5, .paddingBeyondPayload(padding: 0, payload: 5)),
    ] as [([UInt8], Int, RTPProblem)])
  func beyond(_ first: [UInt8], _ payload: Int, _ problem: RTPProblem) {
    var packet = rtpPacket(sequence: 1, payload: [UInt8](repeating: 0, count: payload))
    packet[0] = first[0]
    #expect(throws: problem) { try RTPHeader(parsing: packet.span) }
  }

  @Test("an extension of 65,535 words in a short packet is refused")
  func longExtension() {
    var packet = rtpPacket(sequence: 1, payload: [0xBE, 0xDE, 0xFF, 0xFF, 0, 0, 0, 0])
    packet[0] = 0x90
    #expect(throws: RTPProblem.extensionBeyondEnd(needed: 16 + 4 * 65_535, bytes: 20)) {
      try RTPHeader(parsing: packet.span)
    }
  }

  @Test("padding may be the whole payload, not more")
  func padding() throws {
    var packet = rtpPacket(sequence: 1, payload: [0, 0, 3])
    packet[0] = 0xA0
    let header = try RTPHeader(parsing: packet.span)
    #expect(header.payload == 12..<12 && header.padding == 3)
    packet[14] = 4
    #expect(throws: RTPProblem.paddingBeyondPayload(padding: 4, payload: 3)) {
      try RTPHeader(parsing: packet.span)
    }
  }

  @Test("a problem says what is wrong and where")
  func texts() {
    #expect(
      RTPProblem.tooShort(bytes: 11).description
        == "an RTP packet of 11 bytes is shorter than its header of 12 bytes")
    #expect(
      RTPProblem.noRoom(needed: 20, room: 12).description
        == "the RTP packet needs 20 bytes, the destination has 12: use a larger buffer")
  }

  @Test("random bytes are parsed or refused, and what is parsed lies in the packet")
  func hostile() {
    var random = SeededRandom(seed: 1)
    var parsed = 0
    for _ in 0..<20_000 {
      var packet = random.bytes(Int.random(in: 0...80, using: &random))
      if !packet.isEmpty, Bool.random(using: &random) { packet[0] = packet[0] & 0x3F | 0x80 }
      if packet.count > 16, Bool.random(using: &random) { packet[0] = 0x90 }
      if packet.count > 16, packet[0] == 0x90 {
        packet.replaceSubrange(
          12..<16, with: [[0xBE, 0xDE], [0x10, 0x00]].randomElement(using: &random)! + [0, 2])
      }
      guard let header = try? RTPHeader(parsing: packet.span) else { continue }
      parsed += 1
      #expect(header.payload.upperBound + header.padding == packet.count)
      #expect(header.extensionRange.upperBound <= header.payload.lowerBound)
      for identifier in 0...255 as ClosedRange<UInt8> {
        guard let range = header.range(ofExtension: identifier, in: packet.span) else { continue }
        #expect(header.extensionRange.contains(range) || range.isEmpty)
      }
    }
    #expect(parsed > 2_000)
  }
}
