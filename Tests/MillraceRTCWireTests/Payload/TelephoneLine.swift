import Testing

@testable import MillraceRTCWire

/// Packets of telephone events for tests.
enum TelephoneLine {
  static let millisecond: Int64 = 1_000_000

  struct Sent: Equatable {
    var time: Int64
    var timestamp: UInt32
    var marker: Bool
    var event: TelephoneEvent
  }

  /// All packets of one event, in milliseconds from its start.
  static func send(
    _ code: UInt8, milliseconds: Int64, rate: Int = 8_000, interval: Int64 = 20, timestamp: UInt32 = 1_000
  ) throws -> [Sent] {
    var sender = TelephoneEventSender(clockRate: rate, interval: interval * millisecond)
    let isStarted = sender.start(
      code, duration: milliseconds * millisecond, timestamp: timestamp, at: 77)
    #expect(isStarted)
    var sent: [Sent] = []
    while let time = sender.deadline {
      #expect(try packet(&sender, at: time - 1) == nil)
      while let next = try packet(&sender, at: time) { sent.append(next) }
    }
    #expect(!sender.isSending)
    return sent
  }

  static func packet(_ sender: inout TelephoneEventSender, at now: Int64) throws -> Sent? {
    var buffer = [UInt8](repeating: 0, count: 4)
    var target = buffer.mutableSpan
    guard let packet = try sender.next(at: now, into: &target) else { return nil }
    #expect(packet.byteCount == 4)
    let event = try TelephoneEvent(parsing: target.span)
    return Sent(
      time: (now - 77) / millisecond, timestamp: packet.timestamp, marker: packet.marker, event: event)
  }
}
