import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("What a run may take in memory", .timeLimit(.minutes(30)))
struct MemoryAdmissionTests {
  private func chain(_ name: String, _ source: [String: ParameterValue] = ["count": 5]) -> GraphPlan {
    PlanBuilder.chain(source: source, passes: 1, probe: name)
  }

  /// A chain whose first link holds the given number of 256 MiB packets.
  private func huge(_ packets: Int) -> GraphPlan {
    var plan = chain("memory-huge")
    plan.links[0].limit = packets
    plan.links[0].shape.packetBytes = BlockPool.maxBlockBytes
    plan.links[0].shape.madeBytes = BlockPool.maxBlockBytes
    return plan
  }

  private func refusal(
    of plan: GraphPlan, on engine: Engine, observesEvents: Bool = false
  ) -> StartProblem? {
    do throws(StartProblem) {
      _ = try engine.prepare(plan, observesEvents: observesEvents)
      return nil
    } catch {
      return error
    }
  }

  private func byteCount(_ plan: GraphPlan) -> Int { PlanMemory(plan, observesEvents: false).byteCount }

  // MARK: Limits

  @Test("a graph whose links claim more than the machine has is refused, and the link is named")
  func machine() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let problem = try #require(refusal(of: huge(4_096), on: engine))
    #expect(problem.text.hasPrefix("a run can use 1 TiB, but "))
    #expect(
      problem.text.hasSuffix(
        "; largest: link \"source -> pass0\" 1 TiB (4099 packets of 256 MiB, capacity 4096)"))
    let machine = try #require(MachineMemory.limit())
    #expect(problem.text.contains(machine.limitText))
    #expect(engine.memory.limit == machine.bytes)
    #expect(engine.memory.claimed == 0)
  }

  @Test("the program's limit replaces the machine's")
  func program() throws {
    let plan = chain("memory-program")
    let bytes = byteCount(plan)
    let exact = Engine(catalogue: testCatalogue, workers: 1, memoryLimit: bytes)
    #expect(refusal(of: plan, on: exact) == nil)
    let problem = try #require(
      refusal(of: plan, on: Engine(catalogue: testCatalogue, workers: 1, memoryLimit: bytes - 1)))
    #expect(
      problem.text.hasPrefix(
        "a run can use \(Figures.bytes(bytes)), but the limit is \(Figures.bytes(bytes - 1)); largest: "))
    #expect(
      problem.cure
        == "reduce capacities or packet sizes, run fewer graphs at once, or raise the memory limit")
  }

  @Test("the graph's own limit applies on any machine")
  func graph() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    var plan = chain("memory-graph")
    plan.memoryLimit = byteCount(plan)
    #expect(refusal(of: plan, on: engine) == nil)
    plan.memoryLimit = 1_000
    let problem = try #require(refusal(of: plan, on: engine))
    #expect(problem.text.contains("\"memory\" allows 1000 B"))
    #expect(problem.cure == "reduce capacities or packet sizes, or raise \"memory\"")
  }

  @Test("an allocation the system refuses is reported with a message")
  func system() throws {
    // A petabyte: more than any address space of 47 bits.
    let engine = Engine(catalogue: testCatalogue, workers: 1, memoryLimit: .max)
    let problem = try #require(refusal(of: huge(1 << 22), on: engine))
    #expect(problem.text.hasPrefix("the system refused 1 PiB of memory, of 1 PiB that the graph can take: "))
    #expect(problem.text.contains("link \"source -> pass0\""))
    #expect(engine.memory.claimed == 0)
  }

  @Test("a sum that overflows is refused whatever the limit, and so is a pool with too many blocks")
  func overflow() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1, memoryLimit: .max)
    #expect(byteCount(huge(.max)) == .max)
    #expect(try #require(refusal(of: huge(.max), on: engine)).text.hasPrefix("a run can use 8192 PiB, "))
    var many = chain("memory-many")
    many.links[0].limit = BlockPool.maxBlocks
    #expect(
      try #require(refusal(of: many, on: engine)).text.contains(
        "a pool holds at most \(BlockPool.maxBlocks)"))
    #expect(throws: StartProblem.self) {
      try engine.checkMemory(of: [(self.chain("memory-many"), .max)])
    }
  }

  // MARK: The sum of all runs

  @Test("the sum of all runs counts, and a run's share is released when it has ended")
  func together() throws {
    let plan = chain("memory-together", ["count": -1, "interval": 5])
    let bytes = byteCount(plan)
    let engine = Engine(catalogue: testCatalogue, workers: 1, memoryLimit: 2 * bytes + bytes / 2)
    let first = try engine.prepare(plan, observesEvents: false)
    let second = try engine.start(plan, observesEvents: false)
    first.start()
    let problem = try #require(refusal(of: plan, on: engine))
    #expect(
      problem.text.hasPrefix(
        "a run can use \(Figures.bytes(bytes)) in addition to \(Figures.bytes(2 * bytes)) of 2 other runs, but "
      ))
    #expect(engine.memory.claimed == 2 * bytes)
    first.stop()
    _ = try #require(first.waitUntilStopped(timeout: .seconds(120)))
    #expect(engine.memory.claimed == bytes)
    #expect(refusal(of: plan, on: engine) == nil)
    second.stop()
    _ = try #require(second.waitUntilStopped(timeout: .seconds(120)))
    #expect(engine.memory.claimed == 0)
  }

  @Test("a run that is never started, and one that cannot be created, release their claims")
  func neverStarted() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    do {
      let run = try engine.prepare(chain("memory-unstarted"))
      #expect(engine.memory.claimed > 0)
      withExtendedLifetime(run) {}
    }
    #expect(engine.memory.claimed == 0)
    var plan = chain("memory-unmade")
    plan.nodes[1].contract = NodeContract("test.unknown", "is in no catalogue")
    #expect(throws: StartProblem.self) { try engine.prepare(plan) }
    #expect(engine.memory.claimed == 0)
  }

  @Test("many runs are refused before the first is created")
  func instances() throws {
    let plan = chain("memory-instances")
    let bytes = byteCount(plan)
    let engine = Engine(catalogue: testCatalogue, workers: 1, memoryLimit: 100 * bytes)
    try engine.checkMemory(of: [(plan, 60), (plan, 40)], observesEvents: false)
    let problem = try #require(throws: StartProblem.self) {
      try engine.checkMemory(of: [(plan, 60), (plan, 41)], observesEvents: false)
    }
    #expect(
      problem.text.hasPrefix(
        "101 runs can use \(Figures.bytes(101 * bytes)), each of \"test\" \(Figures.bytes(bytes)), but the limit is \(Figures.bytes(100 * bytes))"
      ))
  }

  // MARK: The computed sum and the memory allocated

  @Test(
    "a run's pools are those that were calculated", arguments: [false, true], [Clock.Kind.realtime, .virtual])
  func pools(observesEvents: Bool, clock: Clock.Kind) throws {
    var builder = PlanBuilder()
    let source = builder.add("source", "test.count", ["count": 5])
    let first = builder.add("first", "test.announce", lane: .bulk)
    builder.link(source, first, policy: .dropOldest)
    let engine = Engine(catalogue: testCatalogue, clock: clock, workers: 1)
    let run = try engine.prepare(builder.plan, observesEvents: observesEvents)
    let memory = PlanMemory(builder.plan, clock: clock, observesEvents: observesEvents)
    let pools = try #require(run.memory).pools
    #expect(pools.map(\.blockCount) == memory.pools.map(\.blockCount))
    #expect(pools.map(\.byteCount) == memory.pools.map(\.byteCount))
    #expect(run.report().poolBytes == memory.blockBytes)
    #expect(engine.memory.claimed == memory.byteCount)
    #expect(run.strands.count == memory.strandCount)
    #expect(run.memory?.outboxes.count == (observesEvents ? memory.strandCount : 0))
    #expect(memory.claims.map(\.bytes).reduce(0, +) == memory.byteCount)
  }

  @Test("the engine's memory for a node is within the computed amount")
  func nodes() {
    let mailbox = MemoryLayout<ControlMessage>.stride * 16 + 512
    let kept =
      MemoryLayout<Cell>.stride + MemoryLayout<CellCounters>.stride + 2
      * MemoryLayout<HistogramCounters>.stride
      + mailbox
    #expect(kept <= PlanMemory.cellBytes)
    #expect(2 * kept > PlanMemory.cellBytes, "far more is calculated than there is: \(kept)")
  }
}
