import MillraceCore

/// The ring alone: one thread pushes and pops packets.
enum RingSuite {
  static let rounds = 5_000_000

  static func run() -> [Figure] {
    [
      Figure(
        "ring", "push+pop of 32 bytes, one thread", unit: "ns", goal: "<= 2",
        samples: (0..<9).map { _ in pushPopPlain() }),
      Figure(
        "ring", "push+pop of a packet, one thread", unit: "ns", goal: "<= 2",
        samples: (0..<9).map { _ in pushPop() }),
      Figure(
        "ring", "take+drop of a pooled block", unit: "ns", samples: (0..<9).map { _ in takeDrop() }),
    ]
  }

  /// The size of a packet, without an owner's duties.
  struct Plain {
    var first: Int
    var second: Int
    var third: Int
    var fourth: Int
  }

  private static func pushPopPlain() -> Double {
    let ring = Ring<Plain>(minimumCapacity: 1_024)
    var writer = ring.writer
    var reader = ring.reader
    var sum = 0
    let start = seconds()
    for round in 0..<rounds {
      writer.push(Plain(first: round, second: sum, third: 3, fourth: 4))
      if let element = reader.pop() { sum &+= element.first }
    }
    let elapsed = seconds() - start
    use(sum)
    return elapsed * 1e9 / Double(rounds)
  }

  /// Packets go round in a ring that always holds 256 of them, as between two busy nodes: no packet is pushed in the same
  /// nanosecond it was popped, so the figure is the ring's and not that of one store waiting for another.
  private static func pushPop() -> Double {
    let ring = Ring<Packet>(minimumCapacity: 1_024)
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
    // A block does not keep its pool alive.
    withExtendedLifetime(pool) {}
    return elapsed * 1e9 / Double(rounds)
  }

  private static func takeDrop() -> Double {
    let pool = BlockPool(blockBytes: 64, blockCount: 4)
    let start = seconds()
    for _ in 0..<rounds {
      guard let block = pool.take() else { return .nan }
      use(block.isUnique)
    }
    defer { withExtendedLifetime(pool) {} }
    return (seconds() - start) * 1e9 / Double(rounds)
  }
}
