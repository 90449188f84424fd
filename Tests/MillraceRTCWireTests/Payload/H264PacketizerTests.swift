import Testing

@testable import MillraceRTCWire

/// The bytes that the packetizer writes (RFC 6184 sections 5.6 to 5.8), and what it refuses.
@Suite("H.264 packetizer")
struct H264PacketizerTests {
  private func payloads(_ bytes: [UInt8], limit: Int = 1_200) throws -> [TestPacket] {
    try H264Stream.packets(bytes, limit: limit)
  }

  private func run(_ first: UInt8, _ count: Int) -> [UInt8] {
    (0..<count).map { first &+ UInt8(truncatingIfNeeded: $0) | 1 }
  }

  @Test("a NAL unit that fits is a payload of its own, without its start code")
  func single() throws {
    let packets = try payloads([0, 0, 0, 1, 0x41, 0x9A, 1, 0, 0, 1, 0x41, 0x1A, 2])
    #expect(packets.map(\.payload) == [[0x41, 0x9A, 1], [0x41, 0x1A, 2]])
    #expect(packets.map(\.marker) == [false, true])
  }

  @Test("a large NAL unit becomes FU-A fragments of equal size, with S in the first and E in the last")
  func fragments() throws {
    let unit = [0x65] + run(9, 29)
    let packets = try payloads([0, 0, 1] + unit, limit: 16)
    #expect(packets.map { Array($0.payload.prefix(2)) } == [[0x7C, 0x85], [0x7C, 0x05], [0x7C, 0x45]])
    #expect(packets.map(\.payload.count) == [12, 12, 11])
    #expect(packets.flatMap { $0.payload.dropFirst(2) } == Array(unit.dropFirst()))
    #expect(packets.map(\.marker) == [false, false, true])
  }

  @Test("the importance of a NAL unit is in the indicator of its fragments")
  func importance() throws {
    let packets = try payloads([0, 0, 1, 0x21] + run(1, 20), limit: 16)
    #expect(packets.map { Array($0.payload.prefix(2)) } == [[0x3C, 0x81], [0x3C, 0x41]])
  }

  @Test("parameter sets and SEI share a STAP-A, as important as the most important of them")
  func aggregate() throws {
    let (sps, pps, sei): ([UInt8], [UInt8], [UInt8]) = (
      [0x27, 0x42, 0xE0, 0x1F], [0x68, 0xCE, 0x81], [0x06, 5, 0x80]
    )
    let start: [UInt8] = [0, 0, 0, 1]
    let packets = try payloads(start + sps + start + pps + start + sei + start + [0x65, 0x88, 1])
    #expect(
      packets.map(\.payload) == [
        [0x78, 0, 4] + sps + [0, 3] + pps + [0, 3] + sei, [0x65, 0x88, 1],
      ])
    #expect(packets.map(\.marker) == [false, true])
  }

  @Test("a parameter set alone is a single NAL unit, and a STAP-A is never larger than the limit")
  func aggregateLimits() throws {
    let start: [UInt8] = [0, 0, 1]
    #expect(try payloads(start + [0x67, 1, 2]).map(\.payload) == [[0x67, 1, 2]])
    // 1 + 2 + 6 + 2 + 5 = 16 bytes fit, 17 do not.
    let sps: [UInt8] = [0x67, 1, 2, 3, 4, 5]
    #expect(try payloads(start + sps + start + [0x68, 1, 2, 3, 4], limit: 16).map(\.payload.count) == [16])
    #expect(
      try payloads(start + sps + start + [0x68, 1, 2, 3, 4, 5], limit: 16).map(\.payload.count) == [6, 6])
  }

  @Test("zero bytes around start codes and empty NAL units are left out")
  func zeros() throws {
    let packets = try payloads([0, 0, 0, 0, 0, 1, 0x41, 0x80, 0, 0, 0, 0, 1, 0, 0, 1, 0x41, 3, 0, 0, 1, 0, 0])
    #expect(packets.map(\.payload) == [[0x41, 0x80], [0x41, 3]])
    #expect(packets.map(\.marker) == [false, true])
  }

  @Test("bytes that only resemble a start code stay in the NAL unit")
  func emulation() throws {
    let unit: [UInt8] = [0x41, 0, 0, 3, 0, 0, 2, 1, 0, 1, 0, 0, 3, 1, 0xFF]
    #expect(try payloads([0, 0, 1] + unit).map(\.payload) == [unit])
  }

  @Test(
    "what has no NAL unit behind a start code is refused",
    arguments: [[], [0], [0, 0, 1], [0, 0, 0, 1, 0, 0], [0x41, 1, 2], [5, 0, 0, 1, 0x41, 1]] as [[UInt8]])
  func noUnit(bytes: [UInt8]) {
    #expect(throws: PayloadProblem.self) { try payloads(bytes) }
  }

  @Test("a NAL unit of a type that only payloads have is refused", arguments: [0, 24, 28, 29, 31] as [UInt8])
  func types(type: UInt8) {
    #expect(throws: PayloadProblem.unsupportedType(H264NALUnitType(rawValue: type))) {
      try payloads([0, 0, 1, 0x60 | type, 1])
    }
  }

  @Test("positions of NAL units give the same payloads as start codes", arguments: [16, 100, 1_200])
  func positions(limit: Int) throws {
    let units: [[UInt8]] = [[0x67, 1, 2], [0x68, 3], [0x65] + run(7, 900), [0x41]]
    var (bytes, ranges): ([UInt8], [Range<Int>]) = ([9, 9, 9], [0..<0])
    for unit in units {
      ranges.append(bytes.count..<bytes.count + unit.count)
      bytes += unit
    }
    var packetizer = try H264Packetizer(bytes.span, nalUnits: ranges.span, maximumBytes: limit)
    var found: [[UInt8]] = []
    var buffer = [UInt8](repeating: 0, count: limit + 5)
    var target = buffer.mutableSpan
    while let written = try packetizer.next(into: &target, at: 5) {
      found.append((5..<5 + written.byteCount).map { target[$0] })
    }
    #expect(try found == payloads(units.flatMap { [0, 0, 0, 1] + $0 }, limit: limit).map(\.payload))
  }

  @Test("a position outside of the bytes is refused")
  func outside() {
    let (bytes, ranges): ([UInt8], [Range<Int>]) = ([0x41, 1], [0..<2, 1..<3])
    #expect(throws: PayloadProblem.self) {
      _ = try H264Packetizer(bytes.span, nalUnits: ranges.span).self
    }
  }

  @Test("a target with less room than the limit is refused, and the payload is written afterwards")
  func room() throws {
    let bytes: [UInt8] = [0, 0, 1, 0x41, 1]
    var packetizer = try H264Packetizer(annexB: bytes.span, maximumBytes: 100)
    var small = [UInt8](repeating: 0, count: 100)
    var target = small.mutableSpan
    var problem: PayloadProblem?
    do throws(PayloadProblem) { _ = try packetizer.next(into: &target, at: 1) } catch { problem = error }
    #expect(problem == .noRoom(bytes: 99, needed: 100))
    #expect(try packetizer.next(into: &target)?.byteCount == 2)
    #expect(try packetizer.next(into: &target) == nil)
  }
}
