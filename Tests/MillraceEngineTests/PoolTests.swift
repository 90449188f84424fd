import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("The media memory of a run", .timeLimit(.minutes(30)))
struct PoolTests {
  /// A chain of links that carry packets of so many bytes.
  private func plan(_ bytes: [Int]) -> GraphPlan {
    var plan = PlanBuilder.chain(source: ["count": 5], passes: bytes.count - 1, probe: "pools")
    for index in bytes.indices {
      plan.links[index].shape.packetBytes = bytes[index]
      plan.links[index].shape.madeBytes = bytes[index]
    }
    return plan
  }

  /// Bytes of blocks for a link of the chain: its 8 packets, one more for a call in progress, and one held by each node.
  private func memory(_ bytes: Int) -> Int { (8 + 1 + 1 + 1) * ((bytes + 63) / 64 * 64 + 64) }

  @Test(
    "holds blocks of the size each link needs, and those of nearly one size together",
    arguments: [
      [1_920, 1_275], [1_920, 640, 1_275], [640, 640], [1, 64], [100_000, 64],
    ])
  func sizes(bytes: [Int]) throws {
    let run = try Engine(catalogue: testCatalogue, workers: 1).prepare(plan(bytes), observesEvents: false)
    #expect(run.report().poolBytes == bytes.reduce(0) { $0 + memory($1) })
  }

  @Test("wastes at most an eighth where sizes share a pool")
  func sharing() throws {
    let run = try Engine(catalogue: testCatalogue, workers: 1)
      .prepare(plan([1_100, 1_150, 1_152]), observesEvents: false)
    #expect(run.report().poolBytes == 3 * memory(1_152))
    #expect(run.memory?.pools.count == 1)
  }

  @Test("has blocks for the packets a node creates, not for the longer ones it forwards")
  func made() throws {
    var plan = self.plan([640, 640])
    plan.links[1].shape.packetBytes = 262_144
    let run = try Engine(catalogue: testCatalogue, workers: 1).prepare(plan, observesEvents: false)
    #expect(run.report().poolBytes == 2 * memory(640))
  }

  @Test("is touched only for packets in flight at once, however long the run and deep the links")
  func touched() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(
      PlanBuilder.chain(source: ["count": 10_000], passes: 6, probe: "touched", limit: 1_000),
      observesEvents: false)
    let pool = try #require(run.memory?.pools.first)
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(report.leakedBlocks == 0)
    #expect(pool.blockCount > 7_000 && pool.touchedCount <= 3)
  }
}
