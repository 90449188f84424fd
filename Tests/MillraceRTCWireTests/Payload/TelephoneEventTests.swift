import Testing

@testable import MillraceRTCWire

/// Telephone events: the wire, keys and the sender (RFC 4733).
@Suite("Telephone events")
struct TelephoneEventTests {
  private typealias Line = TelephoneLine

  // MARK: Wire

  @Test("an event has its code, end bit, volume and duration in four bytes")
  func wire() throws {
    let event = TelephoneEvent(event: 11, isEnd: true, volume: 10, duration: 1_600)
    var buffer = [UInt8](repeating: 0xEE, count: 6)
    var target = buffer.mutableSpan
    #expect(try event.write(into: &target, at: 1) == 4)
    #expect((0..<6).map { target[$0] } == [0xEE, 0x0B, 0x8A, 0x06, 0x40, 0xEE])
    // The reserved bit is ignored.
    #expect(try TelephoneEvent(parsing: [0x0B, 0xCA, 0x06, 0x40].span) == event)
    #expect(try TelephoneEvent(parsing: [0, 0x0B, 0x0A, 0x06, 0x40].span, at: 1).isEnd == false)
    #expect(TelephoneEvent(event: 0, volume: 200, duration: 0).volume == 63)
  }

  @Test("fewer than four bytes are refused, both ways")
  func short() {
    #expect(throws: PayloadProblem.truncated(.telephoneEvent, bytes: 3, needed: 4)) {
      try TelephoneEvent(parsing: [1, 2, 3].span)
    }
    var buffer = [UInt8](repeating: 0, count: 4)
    var target = buffer.mutableSpan
    var problem: PayloadProblem?
    do throws(PayloadProblem) { try TelephoneEvent(event: 1, duration: 0).write(into: &target, at: 1) } catch
    {
      problem = error
    }
    #expect(problem == .noRoom(bytes: 3, needed: 4))
  }

  @Test("the sixteen keys have the codes 0 to 15")
  func keys() {
    for (code, key) in "0123456789*#ABCD".enumerated() {
      #expect(TelephoneEvent.code(of: key) == UInt8(code))
      #expect(TelephoneEvent.key(of: UInt8(code)) == key)
    }
    #expect(TelephoneEvent.code(of: "d") == 15)
    for other in "Ee é٣" { #expect(TelephoneEvent.code(of: other) == nil) }
    #expect(TelephoneEvent.key(of: 16) == nil)
  }

  // MARK: Sender

  @Test("a key of 100 ms becomes five packets of growing duration, of which the last comes three times")
  func key() throws {
    let sent = try Line.send(5, milliseconds: 100)
    #expect(sent.map(\.time) == [0, 20, 40, 60, 80, 100, 120])
    #expect(sent.map(\.event.duration) == [160, 320, 480, 640, 800, 800, 800])
    #expect(sent.map(\.event.isEnd) == [false, false, false, false, true, true, true])
    #expect(sent.map(\.marker) == [true, false, false, false, false, false, false])
    #expect(sent.allSatisfy { $0.timestamp == 1_000 && $0.event.event == 5 && $0.event.volume == 10 })
  }

  @Test(
    "durations are those asked for, at any clock rate and interval",
    arguments: [(8_000, 20, 70, 560), (48_000, 20, 70, 3_360), (16_000, 50, 40, 640), (8_000, 30, 0, 1)]
      as [(Int, Int64, Int64, UInt16)])
  func durations(rate: Int, interval: Int64, milliseconds: Int64, units: UInt16) throws {
    let sent = try Line.send(1, milliseconds: milliseconds, rate: rate, interval: interval)
    #expect(sent.filter(\.event.isEnd).map(\.event.duration) == [units, units, units])
    #expect(sent.count == Int(max(1, (milliseconds + interval - 1) / interval)) + 2)
  }

  @Test("a long event is sent in segments whose timestamps follow each other")
  func segments() throws {
    let sent = try Line.send(3, milliseconds: 20_000, timestamp: 0xFFFF_FF00)
    // 160,000 units: two full segments and 28,930.
    let starts = (0...2).map { UInt32(0xFFFF_FF00) &+ UInt32($0) * 65_535 }
    #expect(Set(sent.map(\.timestamp)) == Set(starts))
    for start in starts.dropLast() {
      let last = try #require(sent.last { $0.timestamp == start })
      #expect(last.event.duration == 65_535 && !last.event.isEnd)
    }
    #expect(sent.filter(\.event.isEnd).map(\.event.duration) == [28_930, 28_930, 28_930])
    #expect(sent.filter(\.marker).count == 1 && sent[0].marker)
    for (one, next) in zip(sent, sent.dropFirst()) where one.timestamp == next.timestamp {
      #expect(one.event.duration <= next.event.duration)
    }
  }

  @Test("an event that ends where a segment does is one segment")
  func exactSegment() throws {
    // 65,535 units at 1,000 Hz.
    let sent = try Line.send(3, milliseconds: 65_535, rate: 1_000)
    #expect(Set(sent.map(\.timestamp)) == [1_000])
    #expect(sent.filter(\.event.isEnd).map(\.event.duration) == [65_535, 65_535, 65_535])
  }

  @Test("one event at a time, and a late call reports the time that has passed")
  func late() throws {
    var sender = TelephoneEventSender()
    #expect(try Line.packet(&sender, at: 0) == nil)
    let isStarted = sender.start(1, duration: 200 * Line.millisecond, timestamp: 5, at: 77)
    #expect(isStarted)
    let isStartedTwice = sender.start(2, duration: 1, timestamp: 6, at: 77)
    #expect(!isStartedTwice)
    #expect(try Line.packet(&sender, at: 77)?.event.duration == 160)
    // 90 ms: the fifth interval.
    #expect(try Line.packet(&sender, at: 77 + 90 * Line.millisecond)?.event.duration == 800)
    #expect(sender.deadline == 77 + 100 * Line.millisecond)
    #expect(try Line.packet(&sender, at: 77 + 99 * Line.millisecond) == nil)
    #expect(try Line.packet(&sender, at: 77 + 900 * Line.millisecond)?.event.isEnd == true)
    sender.cancel()
    #expect(sender.deadline == nil)
    let isStartedAgain = sender.start(2, duration: 1, timestamp: 6, at: 77)
    #expect(isStartedAgain)
  }

  @Test("an event can be stopped early, and never becomes shorter than what was sent")
  func stop() throws {
    var sender = TelephoneEventSender()
    _ = sender.start(1, duration: 5_000 * Line.millisecond, timestamp: 5, at: 77)
    _ = try Line.packet(&sender, at: 77)
    _ = try Line.packet(&sender, at: 77 + 20 * Line.millisecond)
    sender.stop(at: 77 + 25 * Line.millisecond)
    let ends = try (2...4).map { try Line.packet(&sender, at: 77 + Int64($0) * 20 * Line.millisecond)?.event }
    #expect(ends.allSatisfy { $0?.isEnd == true && $0?.duration == 320 })
    #expect(!sender.isSending)
  }
}
