import Testing

@testable import MillraceBench

@Suite("A link that loses datagrams", .timeLimit(.minutes(30)))
struct LossyLinkTests {
  /// A link with its ends.
  private struct Rig {
    let link: LossyLink
    let caller: LinkEnd
    let callee: LinkEnd

    init(_ network: LossyNetwork) throws {
      (caller, callee) = (try LinkEnd(), try LinkEnd())
      link = try LossyLink(network)
      link.set(callerAt: caller.port)
      link.set(calleeAt: callee.port)
    }

    /// Sends numbered datagrams from one end, few at a time, and returns which of them did not reach the other.
    func lost(of count: Int, fromCaller: Bool) throws -> [Bool] {
      let (sender, receiver) = fromCaller ? (caller, callee) : (callee, caller)
      let port = fromCaller ? link.callerPort : link.calleePort
      let before = link.counts
      var lost = [Bool](repeating: true, count: count)
      var received = 0
      for first in stride(from: 0, to: count, by: 50) {
        let next = min(first + 50, count)
        for number in first..<next { sender.send([UInt8(number >> 8), UInt8(number & 0xFF)], to: port) }
        let isPassed = isReached {
          let now = link.counts
          return now.carried + now.lost - before.carried - before.lost == next
        }
        try #require(isPassed, "\(link.counts) of \(next)")
        while received < link.counts.carried - before.carried {
          let bytes = try #require(receiver.receive()).bytes
          lost[Int(bytes[0]) << 8 | Int(bytes[1])] = false
          received += 1
        }
      }
      return lost
    }
  }

  private func share(_ lost: [Bool]) -> Double { Double(lost.count { $0 }) / Double(lost.count) }

  @Test("passes datagrams both ways, in order, as they are, from the port that stands for their sender")
  func passes() throws {
    let rig = try Rig(LossyNetwork(loss: 0, roundTrip: 0))
    defer { rig.link.stop() }
    for number in 0..<50 as Range<UInt8> {
      rig.caller.send([number, 1, 2, 3], to: rig.link.callerPort)
      rig.callee.send([number], to: rig.link.calleePort)
    }
    for number in 0..<50 as Range<UInt8> {
      let up = try #require(rig.callee.receive())
      #expect(up.bytes == [number, 1, 2, 3] && up.port == rig.link.calleePort)
      let down = try #require(rig.caller.receive())
      #expect(down.bytes == [number] && down.port == rig.link.callerPort)
    }
    #expect(isReached { rig.link.counts == (100, 0) })
    #expect(rig.link.lossSoFar == 0)
  }

  @Test("a datagram takes half of the round trip at least")
  func delay() throws {
    let rig = try Rig(LossyNetwork(loss: 0, roundTrip: 0.2))
    defer { rig.link.stop() }
    let start = seconds()
    rig.caller.send([1], to: rig.link.callerPort)
    _ = try #require(rig.callee.receive())
    #expect(seconds() - start >= 0.1)
    rig.callee.send([2], to: rig.link.calleePort)
    _ = try #require(rig.caller.receive())
    #expect(seconds() - start >= 0.2)
  }

  @Test("loses the share that it should, in bursts of the length that they should have")
  func bursts() throws {
    let rig = try Rig(LossyNetwork(loss: 0.05, burst: 3, roundTrip: 0))
    defer { rig.link.stop() }
    let lost = try rig.lost(of: 4_000, fromCaller: true)
    let bursts = lost.indices.count { lost[$0] && ($0 == 0 || !lost[$0 - 1]) }
    #expect((0.04...0.06).contains(share(lost)), "\(share(lost))")
    let length = Double(lost.count { $0 }) / Double(max(bursts, 1))
    #expect((2.5...3.7).contains(length), "\(length)")
    #expect(rig.link.lossSoFar == share(lost))
  }

  @Test("the same seed loses the same datagrams; another seed and the other direction lose others")
  func seeds() throws {
    func lost(_ seed: UInt64, fromCaller: Bool = true) throws -> [Bool] {
      let rig = try Rig(LossyNetwork(loss: 0.2, roundTrip: 0, seed: seed))
      defer { rig.link.stop() }
      return try rig.lost(of: 500, fromCaller: fromCaller)
    }
    let one = try lost(1)
    #expect(try lost(1) == one)
    #expect(try lost(4) != one)
    #expect(try lost(1, fromCaller: false) != one)
  }

  @Test("the share may change while datagrams pass")
  func changes() throws {
    let rig = try Rig(LossyNetwork(loss: 0, roundTrip: 0))
    defer { rig.link.stop() }
    #expect(try share(rig.lost(of: 200, fromCaller: true)) == 0)
    rig.link.set(loss: 0.5)
    #expect(try share(rig.lost(of: 500, fromCaller: true)) > 0.2)
    rig.link.set(loss: 0)
    #expect(try share(rig.lost(of: 200, fromCaller: true)) == 0)
  }

  @Test("a stopped link gives its ports back")
  func stops() throws {
    let rig = try Rig(LossyNetwork())
    rig.link.stop()
    let (one, other) = (try LinkEnd(), try LinkEnd())
    #expect(isReached { one.isRefused(by: rig.link.callerPort) })
    #expect(isReached { other.isRefused(by: rig.link.calleePort) })
  }
}
