import Testing

@testable import MillraceRTCWire

@Suite("RTP: header extensions") struct RTPExtensionTests {
  private let identifiers = RTPExtensionIdentifiers(
    audioLevel: 1, mid: 4, absoluteSendTime: 2, transportSequence: 3)

  /// A packet with this header extension.
  private func packet(_ profile: UInt16, _ elements: [UInt8]) -> [UInt8] {
    var packet = rtpPacket(sequence: 1, payload: [])
    packet[0] = 0x90
    packet += [UInt8(profile >> 8), UInt8(profile & 0xFF), 0, UInt8(elements.count / 4)]
    return packet + elements
  }

  private func data(_ identifier: UInt8, _ packet: [UInt8]) throws -> [UInt8]? {
    let header = try RTPHeader(parsing: packet.span)
    return header.range(ofExtension: identifier, in: packet.span).map { Array(packet[$0]) }
  }

  @Test("the one-byte form of RFC 8285 is read, with padding between")
  func oneByte() throws {
    // The drawing of section 4.2: one byte, two bytes with padding after them, four bytes.
    let packet = packet(0xBEDE, [0x10, 0xA0, 0x21, 0xB0, 0xB1, 0, 0, 0x33, 0xC0, 0xC1, 0xC2, 0xC3])
    #expect(try data(1, packet) == [0xA0])
    #expect(try data(2, packet) == [0xB0, 0xB1])
    #expect(try data(3, packet) == [0xC0, 0xC1, 0xC2, 0xC3])
    #expect(try data(4, packet) == nil)
    #expect(try data(0, packet) == nil)
  }

  @Test("the two-byte form of RFC 8285 is read, also with application bits and an empty element")
  func twoByte() throws {
    for profile in [0x1000, 0x1005, 0x100F] as [UInt16] {
      let packet = packet(profile, [1, 0, 200, 1, 0xB0, 0, 3, 4, 0xC0, 0xC1, 0xC2, 0xC3])
      #expect(try data(1, packet) == [])
      #expect(try data(200, packet) == [0xB0])
      #expect(try data(3, packet) == [0xC0, 0xC1, 0xC2, 0xC3])
      #expect(try RTPHeader(parsing: packet.span).extensionKind == .twoByte)
    }
  }

  @Test("a form that is not known has no elements")
  func other() throws {
    let packet = packet(0x1234, [0x10, 0xA0, 0, 0])
    #expect(try data(1, packet) == nil)
    #expect(try RTPHeader(parsing: packet.span).extensionKind == .other(0x1234))
  }

  @Test(
    "reserved identifiers and cut elements end the reading",
    arguments: [
      [0xF0, 0xAA, 0x10, 0xBB], [0x01, 0xAA, 0x10, 0xBB], [0x2F, 0x10, 0xBB, 0],
    ] as [[UInt8]])
  func ends(_ elements: [UInt8]) throws {
    #expect(try data(1, packet(0xBEDE, elements)) == nil)
    #expect(try data(2, packet(0xBEDE, elements)) == nil)
  }

  @Test("what is written is read, in a header of a multiple of four bytes")
  func roundTrip() throws {
    let extensions = RTPExtensions(
      audioLevel: RTPAudioLevel(attenuation: 42, hasSpeech: true), mid: RTPMediaID("audio-0"),
      absoluteSendTime: RTPAbsoluteSendTime(rawValue: 0x123456), transportSequence: 0xFEDC)
    var bytes = [UInt8](repeating: 0xEE, count: 60)
    var span = bytes.mutableSpan
    let header = RTPHeader(payloadType: 111, sequence: 9, timestamp: 8, ssrc: 7, marker: true)
    let size = try header.write(extensions, identifiers: identifiers, into: &span, at: 4)
    // 12 + 4, and elements of 2, 8, 4 and 3 bytes padded to 20.
    #expect(size == 36)
    let packet = Array(bytes[4..<40])
    #expect(bytes[40] == 0xEE && bytes[3] == 0xEE)
    let read = try RTPHeader(parsing: packet.span)
    #expect(read.payload == 36..<36 && read.marker && read.payloadType == 111)
    #expect(RTPExtensions(read, identifiers, in: packet.span) == extensions)
    #expect(Array(packet[12..<18]) == [0xBE, 0xDE, 0, 5, 0x10, 0xAA])
  }

  @Test("an extension without an identifier is not written, and none makes no extension")
  func notNegotiated() throws {
    var bytes = [UInt8](repeating: 0, count: 40)
    var span = bytes.mutableSpan
    let size = try rtpHeader(1).write(
      RTPExtensions(mid: RTPMediaID("0"), transportSequence: 5), into: &span)
    #expect(size == 12)
    #expect(bytes[0] == 0x80)
  }

  @Test("identifiers beyond the one-byte form and small destinations are refused")
  func refusals() {
    var bytes = [UInt8](repeating: 0, count: 19)
    var span = bytes.mutableSpan
    let extensions = RTPExtensions(transportSequence: 5)
    var problems: [RTPProblem] = []
    for (identifier, offset) in [(15, 0), (0, 0), (3, 0), (3, 8), (3, -1)] as [(UInt8, Int)] {
      do throws(RTPProblem) {
        let ids = RTPExtensionIdentifiers(transportSequence: identifier)
        _ = try rtpHeader(1).write(extensions, identifiers: ids, into: &span, at: offset)
      } catch { problems.append(error) }
    }
    #expect(
      problems == [
        .extensionIdentifier(15), .extensionIdentifier(0), .noRoom(needed: 20, room: 19),
        .noRoom(needed: 20, room: 11), .noRoom(needed: 20, room: 20),
      ])
    #expect(bytes.allSatisfy { $0 == 0 })
  }

  @Test("a media identification keeps 1 to 16 bytes")
  func mediaID() {
    #expect(RTPMediaID("") == nil)
    #expect(RTPMediaID("12345678901234567") == nil)
    #expect(RTPMediaID("1234567890123456")?.description == "1234567890123456")
    #expect(RTPMediaID("a") != RTPMediaID("a\0"))
    #expect(RTPMediaID([0x76, 0x30].span) == RTPMediaID("v0"))
  }

  @Test("absolute send times are 6.18 bits of the NTP time, and differences follow the wrap")
  func sendTime() {
    let late = RTPAbsoluteSendTime(NTPTime(rawValue: 0x0000_003F_FFFF_FFFF))
    #expect(late.rawValue == 0xFF_FFFF)
    let early = RTPAbsoluteSendTime(NTPTime(rawValue: 0x0000_0040_8000_0000))
    #expect(early.rawValue == 0x02_0000)
    // Half a second and one unit of 3.8 µs.
    #expect(early.nanoseconds(since: late) == 500_003_814)
    #expect(late.nanoseconds(since: early) == -500_003_815)
  }

  @Test("a packet that was written gets another transport-wide sequence number and send time")
  func replace() throws {
    var bytes = [UInt8](repeating: 0, count: 40)
    var span = bytes.mutableSpan
    let extensions = RTPExtensions(
      absoluteSendTime: RTPAbsoluteSendTime(rawValue: 1), transportSequence: 5)
    let size = try rtpHeader(1).write(extensions, identifiers: identifiers, into: &span)
    var packet = Array(bytes[0..<size])
    let header = try RTPHeader(parsing: packet.span)
    var target = packet.mutableSpan
    let replaced = (
      header.replaceTransportSequence(3, by: 0xABCD, in: &target),
      header.replaceAbsoluteSendTime(2, by: RTPAbsoluteSendTime(rawValue: 0x445566), in: &target),
      header.replaceTransportSequence(9, by: 1, in: &target)
    )
    #expect(replaced == (true, true, false))
    let read = RTPExtensions(header, identifiers, in: packet.span)
    #expect(read.transportSequence == 0xABCD && read.absoluteSendTime?.rawValue == 0x445566)
  }
}
