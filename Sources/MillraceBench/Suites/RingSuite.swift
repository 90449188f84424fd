import MillraceCore
import Synchronization

/// The ring alone, next to a plain C++ ring, boost's and moodycamel's: 32 bytes per element, 1,024 elements.
///
/// Between threads both ends spin, each on its own processor: that compares rings, and is not how graphs run. Elements are sent in
/// bursts of 64, the next once the reader has taken the last. Two threads that only push and pop would measure chance: for the same
/// ring 3 ns per element while the reader happens to lag behind, and 60 ns when it takes each one as it arrives.
enum RingSuite {
  /// A whole number of bursts.
  private static let rounds = 64 * 16_384
  private static let burst = 64
  private static let trips = 50_000
  private static let turns = 7
  private static let capacity = 1_024

  /// An element the size of a packet, without ownership.
  private struct Plain {
    var first: Int
    var second = 2
    var third = 3
    var fourth = 4
  }

  static func run() throws -> [Figure] {
    var figures = try race(
      "push+pop of 32 bytes, one thread", goal: "<= 2", ours: pushAndPop,
      theirs: { Self.perRound($0.pushAndPop(rounds: rounds)) })
    if Pinned.core > 0 {
      let (one, other) = (0, Pinned.core)
      figures += try race(
        "32 bytes from thread to thread, in bursts of \(burst)", ours: { try bursts(from: one, to: other) },
        theirs: { Self.perRound($0.bursts(of: burst, rounds: rounds, from: one, to: other)) })
      figures += try race(
        "32 bytes there and back", ours: { try roundTrip(between: one, and: other) },
        theirs: { $0.roundTrip(rounds: trips, between: one, and: other) * 1e9 / Double(trips) })
    } else {
      figures.append(Figure("ring", "32 bytes from thread to thread", skipped: "it needs two processors"))
    }
    let own = try inTurns(rounds: turns, [pushPackets, takeBlocks])
    return figures + [
      Figure("ring", "push+pop of a packet, one thread", unit: "ns", goal: "<= 2", samples: own[0]),
      Figure("ring", "take+drop of a pooled block", unit: "ns", samples: own[1]),
    ]
  }

  /// One case for Millrace's ring and every registered ring.
  private static func race(
    _ name: String, goal: String = "", ours: @escaping () throws -> Double,
    theirs: @escaping (any RingPeer) -> Double
  ) throws -> [Figure] {
    let peers = Peers.rings
    let present = peers.filter { $0.missing == nil }
    let samples = try inTurns(rounds: turns, [ours] + present.map { peer in { theirs(peer) } })
    var figures = [Figure("ring", name, unit: "ns", goal: goal, samples: samples[0])]
    for (peer, samples) in zip(present, samples.dropFirst()) {
      figures.append(Figure("ring", name, of: peer.name, unit: "ns", samples: samples))
    }
    for peer in peers {
      if let missing = peer.missing { figures.append(Figure("ring", name, of: peer.name, skipped: missing)) }
    }
    if peers.isEmpty { figures.append(Figure("ring", name, of: "C++ rings", skipped: Peers.absent)) }
    return figures
  }

  /// Nanoseconds per round.
  private static func perRound(_ seconds: Double) -> Double { seconds * 1e9 / Double(rounds) }

  // MARK: Millrace

  private static func pushAndPop() -> Double {
    let ring = Ring<Plain>(minimumCapacity: capacity)
    var writer = ring.writer
    var reader = ring.reader
    var sum = 0
    let start = seconds()
    for round in 0..<rounds {
      writer.push(Plain(first: round, second: sum))
      if let element = reader.pop() { sum &+= element.first }
    }
    let elapsed = seconds() - start
    use(sum)
    return perRound(elapsed)
  }

  private static func bursts(from core: Int, to other: Int) throws -> Double {
    let ring = Ring<Plain>(minimumCapacity: capacity)
    let writer = Held(ring.writer)
    let reader = Held(ring.reader)
    let taken = Taken()
    let elapsed = try Pinned.pair(
      {
        var reader = reader.take()
        var sum = 0
        for round in 1...rounds {
          while reader.isEmpty {}
          sum &+= reader.pop()?.first ?? 0
          if round % burst == 0 { taken.count.store(round, ordering: .releasing) }
        }
        use(sum)
      }, on: other,
      { () -> Double in
        var writer = writer.take()
        let start = seconds()
        for round in 1...rounds {
          writer.push(Plain(first: round))
          if round % burst == 0 {
            while taken.count.load(ordering: .acquiring) != round {}
          }
        }
        return seconds() - start
      }, on: core)
    return perRound(elapsed)
  }

  private static func roundTrip(between core: Int, and other: Int) throws -> Double {
    let there = Ring<Plain>(minimumCapacity: capacity)
    let back = Ring<Plain>(minimumCapacity: capacity)
    let ends = (Held(there.writer), Held(there.reader), Held(back.writer), Held(back.reader))
    let elapsed = try Pinned.pair(
      {
        var reader = ends.1.take()
        var writer = ends.2.take()
        for _ in 0..<trips {
          while reader.isEmpty {}
          if let element = reader.pop() { writer.push(element) }
        }
      }, on: core,
      { () -> Double in
        var writer = ends.0.take()
        var reader = ends.3.take()
        let start = seconds()
        for round in 0..<trips {
          writer.push(Plain(first: round))
          while reader.isEmpty {}
          use(reader.pop()?.first)
        }
        return seconds() - start
      }, on: other)
    return elapsed * 1e9 / Double(trips)
  }

  /// Packets circulate in a ring that always holds 256 of them, as between two busy nodes. So no packet is popped right after it was
  /// pushed, and the figure does not include the wait of a load for a recent store.
  private static func pushPackets() -> Double {
    let ring = Ring<Packet>(minimumCapacity: capacity)
    var writer = ring.writer
    var reader = ring.reader
    let pool = BlockPool(blockBytes: 64, blockCount: 256)
    for _ in 0..<256 {
      if let block = pool.take() { writer.push(Packet(block, byteCount: 0)) }
    }
    let start = seconds()
    for _ in 0..<rounds {
      if let packet = reader.pop() { writer.push(packet) }
    }
    let elapsed = seconds() - start
    while let packet = reader.pop() { _ = consume packet }
    // A block does not retain its pool.
    withExtendedLifetime(pool) {}
    return perRound(elapsed)
  }

  private static func takeBlocks() -> Double {
    let pool = BlockPool(blockBytes: 64, blockCount: 4)
    let start = seconds()
    for _ in 0..<rounds {
      guard let block = pool.take() else { return .nan }
      use(block.isUnique)
    }
    defer { withExtendedLifetime(pool) {} }
    return perRound(seconds() - start)
  }
}

/// How many elements the reader has taken, published once per burst.
private final class Taken: Sendable {
  let count = Atomic<Int>(0)
}

/// Carries an end of a ring into a closure, which takes it once.
private final class Held<Value: ~Copyable>: @unchecked Sendable {
  private var value: Value?
  init(_ value: consuming Value) { self.value = consume value }
  func take() -> Value {
    guard let value = value.take() else { fatalError("the end of a ring was taken twice") }
    return value
  }
}
