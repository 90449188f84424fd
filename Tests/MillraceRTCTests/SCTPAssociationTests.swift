import MillraceCore
import Testing

@testable import MillraceRTC

/// Two associations whose packets a test carries. On the loop's thread.
private final class AssociationPair: RTCLoopMember {
  final class End {
    var association: SCTPAssociation?
    var packets: [[UInt8]] = []
    var events: [SCTPAssociation.Event] = []

    func read() {
      while let event = association?.next() { events.append(event) }
    }
  }

  let (a, b) = (End(), End())
  private var entry: RTCLoop.Entry?

  init(on loop: RTCLoop, largest: Int = 0) throws(RTCProblem) {
    let entry = loop.add(self)
    self.entry = entry
    for end in [a, b] {
      end.association = try SCTPAssociation(
        localPort: 5_000, remotePort: 5_000, largest: largest, entry: entry
      ) {
        [weak end] in end?.packets.append(Array($0))
      }
    }
  }

  func run(at now: Nanoseconds) -> Nanoseconds? { nil }
  func end() {}

  /// Carries packets until none is left.
  func exchange() {
    while !a.packets.isEmpty || !b.packets.isEmpty {
      for (end, peer) in [(a, b), (b, a)] {
        let packets = end.packets
        end.packets = []
        for packet in packets { packet.withUnsafeBytes { peer.association?.feed($0) } }
        peer.read()
      }
    }
  }
}

@Suite("an SCTP association", .timeLimit(.minutes(2)))
struct SCTPAssociationTests {
  /// Runs a body on a loop's thread, and returns what it returns.
  private func run<Answer: Sendable>(
    _ body: @escaping @Sendable (RTCLoop) throws(RTCProblem) -> Answer
  ) async throws -> Answer {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let answer = Locked<Result<Answer, RTCProblem>?>(nil)
    loop.perform {
      let result = Result { () throws(RTCProblem) in try body(loop) }
      answer.withLock { $0 = result }
    }
    while true {
      if let result = answer.withLock({ $0 }) { return try result.get() }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  @Test("both sides may begin at once")
  func connects() async throws {
    let events = try await run { (loop) throws(RTCProblem) in
      let pair = try AssociationPair(on: loop)
      pair.exchange()
      return [pair.a.events, pair.b.events]
    }
    #expect(events.allSatisfy { $0.first == .connected })
  }

  @Test("a flood of what is no packet ends nothing, and takes nothing")
  func flood() async throws {
    let events = try await run { (loop) throws(RTCProblem) in
      let pair = try AssociationPair(on: loop)
      pair.exchange()
      for number in 0..<20_000 {
        let noise = (0..<(number % 64)).map { UInt8(truncatingIfNeeded: $0 &* number) }
        noise.withUnsafeBytes { pair.b.association?.feed($0) }
        pair.b.read()
      }
      pair.exchange()
      _ = pair.a.association?.send([1, 2], stream: 3, protocol: 53, SCTPAssociation.Delivery())
      pair.exchange()
      return pair.b.events
    }
    #expect(events.last == .message(stream: 3, protocol: 53, bytes: [1, 2]))
    #expect(events.allSatisfy { $0 == .connected || $0 == events.last })
  }

  @Test("packets that were changed on the way, or cut, are as if they were lost")
  func changedPackets() async throws {
    let events = try await run { (loop) throws(RTCProblem) in
      let pair = try AssociationPair(on: loop)
      pair.exchange()
      _ = pair.a.association?.send([9, 8, 7], stream: 1, protocol: 51, SCTPAssociation.Delivery())
      let packet = pair.a.packets.first ?? []
      for index in packet.indices {
        var changed = packet
        changed[index] ^= 0x10
        changed.withUnsafeBytes { pair.b.association?.feed($0) }
        packet[..<index].withUnsafeBytes { pair.b.association?.feed($0) }
        pair.b.read()
      }
      pair.exchange()
      return pair.b.events
    }
    let message = SCTPAssociation.Event.message(stream: 1, protocol: 51, bytes: [9, 8, 7])
    #expect(events.filter { $0 != .connected } == [message])
  }

  @Test("an association that the peer ends is over once, and nothing is read behind it")
  func ends() async throws {
    let events = try await run { (loop) throws(RTCProblem) in
      let pair = try AssociationPair(on: loop)
      pair.exchange()
      pair.a.association?.close()
      pair.exchange()
      for _ in 0..<3 { pair.b.read() }
      return pair.b.events
    }
    #expect(events == [.connected, .ended])
  }

  @Test("a message that is larger than this side takes is dropped, and the next one arrives")
  func tooLarge() async throws {
    let events = try await run { (loop) throws(RTCProblem) in
      let pair = try AssociationPair(on: loop, largest: 1_000)
      pair.exchange()
      for count in [1_001, 1_000] {
        let bytes = [UInt8](repeating: 1, count: count)
        _ = pair.a.association?.send(bytes, stream: 1, protocol: 53, SCTPAssociation.Delivery())
      }
      pair.exchange()
      return pair.b.events
    }
    #expect(
      events.filter { $0 != .connected } == [
        .tooLarge(stream: 1, count: 1_001),
        .message(stream: 1, protocol: 53, bytes: [UInt8](repeating: 1, count: 1_000)),
      ])
  }
}
