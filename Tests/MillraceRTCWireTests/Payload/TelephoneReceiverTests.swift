import Testing

@testable import MillraceRTCWire

/// Telephone events on the receiving side (RFC 4733 section 2.5.2).
@Suite("Telephone events received")
struct TelephoneReceiverTests {
  private typealias Line = TelephoneLine
  private typealias Sent = TelephoneLine.Sent

  private func receive(
    _ packets: [Sent], _ receiver: inout TelephoneEventReceiver
  ) throws -> [TelephoneEventReport] {
    var reports: [TelephoneEventReport] = []
    for packet in packets {
      let time = packet.time * Line.millisecond
      if let report = receiver.expire(at: time) { reports.append(report) }
      var buffer = [UInt8](repeating: 0, count: 4)
      var target = buffer.mutableSpan
      try packet.event.write(into: &target)
      try receiver.receive(target.span, timestamp: packet.timestamp, marker: packet.marker, at: time) {
        reports.append($0)
      }
    }
    return reports
  }

  @Test("a key is reported once, with its duration, however many packets are lost")
  func lost() throws {
    let sent = try Line.send(9, milliseconds: 100)
    for mask in 1..<(1 << sent.count) {
      let kept = sent.indices.filter { mask >> $0 & 1 == 1 }.map { sent[$0] }
      var receiver = TelephoneEventReceiver()
      var reports = try receive(kept, &receiver)
      if let report = receiver.expire(at: 1_000 * Line.millisecond) { reports.append(report) }
      let hasEnd = kept.contains(where: \.event.isEnd)
      let milliseconds = kept.map { Int($0.event.duration) / 8 }.max() ?? 0
      #expect(
        reports == [
          TelephoneEventReport(
            event: 9, timestamp: 1_000, milliseconds: milliseconds, volume: 10, isEndLost: !hasEnd)
        ])
    }
  }

  @Test("the event that lasts is known before its end, and its time is over after the timeout")
  func timeout() throws {
    var receiver = TelephoneEventReceiver(timeout: 100 * Line.millisecond)
    let sent = try Line.send(9, milliseconds: 100)
    #expect(receiver.current == nil && receiver.deadline == nil)
    #expect(try receive(Array(sent.prefix(2)), &receiver).isEmpty)
    #expect(receiver.current == 9 && receiver.deadline == 120 * Line.millisecond)
    let expired = [119, 120, 120].map { receiver.expire(at: $0 * Line.millisecond)?.milliseconds }
    #expect(expired == [nil, 40, nil] && receiver.current == nil)
    // What still comes of it is no other key.
    #expect(try receive(Array(sent.dropFirst(2)), &receiver).isEmpty)
  }

  @Test("keys after each other are different keys, also when they are equal and all ends are lost")
  func sequence() throws {
    var packets: [Sent] = []
    for (index, key) in "5519*".enumerated() {
      let code = try #require(TelephoneEvent.code(of: key))
      let one = try Line.send(code, milliseconds: 60, timestamp: UInt32(index) * 800)
      packets += one.filter { index % 2 == 0 || !$0.event.isEnd }.map {
        Sent(time: $0.time + Int64(index) * 100, timestamp: $0.timestamp, marker: false, event: $0.event)
      }
    }
    var receiver = TelephoneEventReceiver()
    let reports = try receive(packets, &receiver)
    #expect(String(reports.compactMap(\.key)) == "5519*")
    #expect(reports.map(\.isEndLost) == [false, true, false, true, false])
    #expect(reports.map(\.milliseconds) == [60, 40, 60, 40, 60])
    // An end of the key before that arrives now is late.
    let late = Sent(
      time: 480, timestamp: 2_400, marker: false, event: TelephoneEvent(event: 9, isEnd: true, duration: 480))
    #expect(try receive([late], &receiver).isEmpty)
  }

  @Test("packets in any order make one report of the longest duration before the end")
  func reordered() throws {
    let sent = try Line.send(7, milliseconds: 100)
    var random = SeededRandom(seed: 6)
    for _ in 0..<200 {
      var packets = sent.shuffled(using: &random)
      for index in packets.indices { packets[index].time = Int64(index) * 20 }
      var receiver = TelephoneEventReceiver()
      #expect(try receive(packets, &receiver).map(\.milliseconds) == [100])
    }
  }

  @Test("the segments of a long event are one report, also when the end of a segment is lost")
  func longEvent() throws {
    let sent = try Line.send(3, milliseconds: 20_000, timestamp: 0xFFFF_FF00)
    var receiver = TelephoneEventReceiver()
    let report = TelephoneEventReport(
      event: 3, timestamp: 0xFFFF_FF00, milliseconds: 20_000, volume: 10, isEndLost: false)
    #expect(try receive(sent, &receiver) == [report])
    receiver.reset()
    #expect(try receive(sent.filter { $0.event.duration != 65_535 }, &receiver) == [report])
    // Over after the timeout, it stays over.
    var early = TelephoneEventReceiver()
    let pause = sent.filter { !(8_000..<8_400).contains($0.time) }
    let reports = try receive(pause, &early)
    #expect(reports.map(\.milliseconds) == [8_000] && reports.map(\.isEndLost) == [true])
  }

  @Test("timestamps may wrap, and after a long pause a lower one is another key")
  func wrap() throws {
    var receiver = TelephoneEventReceiver()
    let end = TelephoneEvent(event: 1, isEnd: true, duration: 800)
    func packet(_ time: Int64, _ timestamp: UInt32) -> Sent {
      Sent(time: time, timestamp: timestamp, marker: true, event: end)
    }
    #expect(try receive([packet(0, 0xFFFF_FFF0), packet(200, 1_600)], &receiver).count == 2)
    #expect(try receive([packet(400, 0xFFFF_FFF0)], &receiver).isEmpty)
    #expect(try receive([packet(300_000_000, 0xC000_0000)], &receiver).count == 1)
    #expect(try receive([packet(600_000_000, 0xC000_0000)], &receiver).count == 1)
  }

  @Test("several events in one payload are taken in order, each where the one before it ends")
  func packed() throws {
    var receiver = TelephoneEventReceiver()
    var reports: [TelephoneEventReport] = []
    let payload: [UInt8] = [1, 0x8A, 0, 80, 1, 0x8A, 0, 160, 2, 0x0A, 0, 240]
    for _ in 0..<3 {
      try receiver.receive(payload.span, timestamp: 8_000, marker: true, at: 0) { reports.append($0) }
    }
    #expect(reports.map(\.timestamp) == [8_000, 8_080] && reports.map(\.milliseconds) == [10, 20])
    #expect(receiver.current == 2)
  }

  @Test("a payload that is no row of events is refused and has no effect", arguments: [0, 1, 3, 5, 7, 9])
  func malformed(count: Int) {
    var receiver = TelephoneEventReceiver()
    #expect(throws: PayloadProblem.self) {
      try receiver.receive([UInt8](repeating: 0, count: count).span, timestamp: 0, marker: true, at: 0) { _ in
      }
    }
    #expect(receiver.current == nil)
  }

  @Test("no payloads crash the receiver")
  func hostile() {
    var random = SeededRandom(seed: 7)
    var receiver = TelephoneEventReceiver(clockRate: 1)
    var (now, reports): (Int64, Int) = (0, 0)
    for _ in 0..<20_000 {
      let payload = random.extremeBytes(Int(random.next() & 7) * 4 + (random.next() & 15 == 0 ? 1 : 0))
      now += Int64(random.next() & 0xFFF_FFFF)
      let timestamp = UInt32(
        truncatingIfNeeded: random.next() & 1 == 0 ? random.next() & 3 * 65_535 : random.next())
      try? receiver.receive(payload.span, timestamp: timestamp, marker: random.next() & 1 == 0, at: now) {
        _ in
        reports += 1
      }
      if receiver.expire(at: now + Int64(random.next() & 0xFFF_FFFF)) != nil { reports += 1 }
    }
    #expect(reports > 1_000)
  }
}
