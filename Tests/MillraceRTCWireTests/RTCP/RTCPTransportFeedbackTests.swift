import Testing

@testable import MillraceRTCWire

private let tick = RTCPTransportFeedback.deltaUnit
private let lost = RTCPTransportFeedback.notReceived

/// Feedback from 1 about 2 with this content after the two sources.
private func feedback(_ content: [UInt8], padding: Bool = false) -> [UInt8] {
  [padding ? 0xAF : 0x8F, 205, 0, UInt8(content.count / 4 + 2), 0, 0, 0, 1, 0, 0, 0, 2] + content
}

private func write(
  _ arrivals: [Int64], base: UInt16 = 0, number: UInt8 = 0, room: Int = 1_200
) throws -> (bytes: [UInt8], covered: Int) {
  var covered = 0
  let bytes = try rtcpBytes(room: room) {
    covered = try $0.transportFeedback(
      sender: 1, media: 2, base: base, number: number, arrivals: arrivals.span)
  }
  return (bytes, covered)
}

@Suite("RTCP: transport-wide feedback") struct RTCPTransportFeedbackTests {
  /// Packets as the tests of Pion have them.
  private static let examples: [([UInt8], String)] = [
    (
      [
        0xAF, 0xCD, 0x00, 0x05, 0xFA, 0x17, 0xFA, 0x17, 0x43, 0x03, 0x2F, 0xA0, 0x00, 0x99, 0x00, 0x01, 0x3D,
        0xE8,
        0x02, 0x17, 0x20, 0x01, 0x94, 0x01,
      ], "TWCC 153 4057090 23: 148"
    ),
    (
      [
        0xAF, 0xCD, 0x00, 0x07, 0xFA, 0x17, 0xFA, 0x17, 0x19, 0x3D, 0xD8, 0xBB, 0x00, 0x04, 0x00, 0x07, 0x10,
        0x63,
        0x6E, 0x01, 0x20, 0x07, 0x4C, 0x24, 0x24, 0x10, 0x0C, 0x0C, 0x10, 0x00, 0x00, 0x03,
      ], "TWCC 4 1074030 1: 76 36 36 16 12 12 16"
    ),
  ]

  @Test("packets of another implementation are read", arguments: examples)
  func pion(_ bytes: [UInt8], _ text: String) { #expect(rtcpWords(bytes) == [text]) }

  @Test("what another implementation wrote is written with the same bytes", arguments: examples)
  func pionWritten(_ wanted: [UInt8], _ text: String) throws {
    let reference = Int64(wanted.span.uint24(at: 16)) * RTCPTransportFeedback.referenceUnit
    let arrivals = rtcpStatuses(wanted).map { $0.arrival.map { reference + $0 } ?? lost }
    let bytes = try rtcpBytes {
      _ = try $0.transportFeedback(
        sender: wanted.span.uint32(at: 4), media: wanted.span.uint32(at: 8), base: wanted.span.uint16(at: 12),
        number: wanted[19], arrivals: arrivals.span)
    }
    #expect(bytes == wanted)
  }

  @Test(
    "chunks are chosen and written as the draft has them",
    arguments: [
      // One and two bits: small, lost, large, large and negative.
      ([0, lost, 400, 396], [0xD2, 0x80, 0, 0x01, 0x90, 0xFF, 0xFC, 1]),
      // 14 of one bit, with a part of the vector unused.
      ([0, lost, 1, lost, 2, lost, 3, lost, 4], [0xAA, 0xA0, 0, 1, 1, 1, 1, 1]),
      // A run of seven, though a large delta follows.
      ([0, 1, 2, 3, 4, 5, 6, 400], [0x20, 0x07, 0x40, 0x01, 0, 1, 1, 1, 1, 1, 1, 0x01, 0x8A, 0, 0, 3]),
      // 255 units are small, 256 are large.
      ([0, 255, 511], [0xD6, 0x00, 0, 255, 0x01, 0x00, 0, 2]),
    ] as [([Int64], [UInt8])])
  func chunks(_ ticks: [Int64], _ wanted: [UInt8]) throws {
    let arrivals = ticks.map { $0 == lost ? lost : $0 * tick }
    let (bytes, covered) = try write(arrivals)
    #expect(covered == ticks.count)
    #expect(Array(bytes[20...]) == wanted)
    #expect(Int(bytes[3]) == bytes.count / 4 - 1)
  }

  @Test("long runs are cut at 8,191 packets")
  func longRuns() throws {
    let arrivals = [0] + [Int64](repeating: lost, count: 9_000) + [60 * tick]
    let (bytes, covered) = try write(arrivals, base: 60_000)
    #expect(covered == 9_002)
    // A vector with the first, runs of 8,191 and 796, and the last.
    #expect(Array(bytes[20..<28]) == [0xA0, 0x00, 0x1F, 0xFF, 0x03, 0x1C, 0x20, 0x01])
    let statuses = rtcpStatuses(bytes)
    #expect(statuses.count == 9_002)
    #expect(statuses.last == .init(sequence: UInt16(truncatingIfNeeded: 69_001), arrival: 60 * tick))
  }

  @Test("the reference is the first arrival rounded down to 64 ms, also of negative times")
  func reference() throws {
    let unit = RTCPTransportFeedback.referenceUnit
    #expect(rtcpWords(try write([3 * unit + 2 * tick + 1]).bytes) == ["TWCC 0 3 0: 2"])
    #expect(rtcpWords(try write([-1]).bytes) == ["TWCC 0 \(0xFF_FFFF) 0: 255"])
    #expect(rtcpWords(try write([lost, (unit << 24) + 5 * unit]).bytes) == ["TWCC 0 5 0: - 0"])
  }

  @Test("feedback ends before a delta that does not fit")
  func largeGap() throws {
    #expect(try write([0, 32_767 * tick]).covered == 2)
    #expect(try write([0, 32_768 * tick]).covered == 1)
    #expect(try write([32_768 * tick, 0]).covered == 2)
    #expect(try write([32_769 * tick, 0]).covered == 1)
  }

  @Test("feedback ends where the destination is full, and is refused where nothing fits")
  func room() throws {
    let arrivals = (0..<100).map { Int64($0) * 300 * tick }
    let (bytes, covered) = try write(arrivals, room: 41)
    // 20 bytes of chunks and deltas: a vector of seven with a small delta and six large ones, and a run of one.
    #expect(bytes.count == 40 && covered == 8)
    #expect(rtcpStatuses(bytes).count == 8)
    #expect(throws: RTCPProblem.noRoom(needed: 24, room: 23)) { try write([0], room: 23) }
    #expect(try write([], room: 0).covered == 0)
  }

  @Test("random arrivals are read as they were written, in as many packets as they need")
  func roundTrip() throws {
    var random = SeededRandom(seed: 9)
    for _ in 0..<400 {
      var now = Int64.random(in: -1_000_000_000...1_000_000_000_000, using: &random)
      let (loss, jump) = (random.next() % 4, random.next() % 40)
      let arrivals = (0..<Int.random(in: 1...300, using: &random)).map { _ -> Int64 in
        now += Int64.random(in: -1_000_000...3_000_000, using: &random)
        if random.next() % 40 < jump / 8 {
          now += Int64.random(in: -9_000_000_000...9_000_000_000, using: &random)
        }
        return random.next() % 8 < loss ? lost : now
      }
      var (next, packets) = (0, 0)
      while next < arrivals.count {
        let rest = Array(arrivals[next...])
        let (bytes, covered) = try write(
          rest, base: UInt16(truncatingIfNeeded: 65_500 + next),
          room: Int.random(in: 64...400, using: &random))
        check(bytes, rest, covered, base: UInt16(truncatingIfNeeded: 65_500 + next))
        next += covered
        packets += 1
        try #require(covered > 0 && packets <= 300)
      }
    }
  }

  private func check(_ bytes: [UInt8], _ arrivals: [Int64], _ covered: Int, base: UInt16) {
    let statuses = rtcpStatuses(bytes)
    #expect(statuses.count == covered && bytes.count % 4 == 0)
    let first = arrivals.first { $0 != lost } ?? 0
    // Rounded towards minus infinity, which a shift does.
    let reference = first >> 0 >= 0 ? first / 64_000_000 : (first - 63_999_999) / 64_000_000
    for (index, status) in statuses.enumerated() {
      #expect(status.sequence == base &+ UInt16(truncatingIfNeeded: index))
      guard arrivals[index] != lost else {
        #expect(status.arrival == nil)
        continue
      }
      let late = arrivals[index] - reference * 64_000_000 - (status.arrival ?? .max / 2)
      #expect((0..<tick).contains(late))
    }
  }

  @Test("runs without length, reserved symbols and missing deltas are refused or skipped")
  func hostile() {
    let cut = ["\(RTCPProblem.contentCut(type: 205, at: 0))"]
    let invalid = ["\(RTCPProblem.contentInvalid(type: 205, at: 0))"]
    // No packet.
    #expect(rtcpWords(feedback([0, 0, 0, 0, 0, 0, 0, 0])) == invalid)
    // Two runs without length, then one of one.
    #expect(rtcpWords(feedback([0, 5, 0, 1, 0, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 1, 9, 0])) == ["TWCC 5 0 0: 9"])
    // Only runs without length.
    #expect(rtcpWords(feedback([0, 5, 0, 1, 0, 0, 0, 0, 0x20, 0, 0, 0])) == cut)
    // 65,535 received packets in one packet without deltas.
    #expect(rtcpWords(feedback([0, 5, 0xFF, 0xFF, 0, 0, 0, 0, 0x3F, 0xFF, 0x3F, 0xFF])) == cut)
    // A run and a vector with the reserved symbol; behind the last packet it does not matter.
    #expect(rtcpWords(feedback([0, 5, 0, 1, 0, 0, 0, 0, 0x60, 1, 0, 0])) == invalid)
    #expect(rtcpWords(feedback([0, 5, 0, 2, 0, 0, 0, 0, 0xCC, 0, 0, 0])) == invalid)
    #expect(rtcpWords(feedback([0, 5, 0, 1, 0, 0, 0, 0, 0xCC, 0, 0, 0])) == ["TWCC 5 0 0: -"])
    // Deltas that only the padding has room for.
    #expect(rtcpWords(feedback([0, 5, 0, 2, 0, 0, 0, 0, 0x20, 2, 9, 1], padding: true)) == cut)
    #expect(rtcpWords(feedback([0, 5, 0, 2])) == cut)
  }
}
