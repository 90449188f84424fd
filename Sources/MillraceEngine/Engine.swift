internal import Glibc
public import MillraceCore
public import MillraceGraph

/// Runs graphs: a few worker threads shared by any number of graph instances.
///
/// ```swift
/// let engine = Engine(catalogue: .standard)
/// let plan = try Graph.load(path: "uplink.json", catalogue: .standard)
/// let run = try engine.prepare(plan)
/// Task { for await event in run.events { print(event.json) } }
/// run.start()
/// let report = await run.wait()
/// ```
///
/// Each node runs on its graph's worker; packets cross threads only between lanes. Thread-safe. A run keeps its engine alive; the
/// threads end with the last reference to the engine and its runs.
public final class Engine: Sendable {
  let core: EngineCore

  /// Starts the workers.
  /// - Parameters:
  ///   - catalogue: the node types graphs may use.
  ///   - clock: `realtime`, or `virtual`: time then advances only when no work is left, graphs run as fast as the machine can, and
  ///     every run of a graph gives the same packets in the same order.
  ///   - workers: voice workers; nil: one per processor, at most four. One more worker runs bulk work (on a virtual clock all nodes
  ///     of a graph share one thread).
  ///   - memoryLimit: the most bytes all runs together may take, as `PlanMemory` counts them, at least 1; nil: what this machine has
  ///     or its control group allows (`MachineMemory`). A run that would not fit is refused. The limit replaces the machine's even
  ///     when it is larger: useful when the links are never all full at once.
  public init(
    catalogue: Catalogue, clock: Clock.Kind = .realtime, workers: Int? = nil, memoryLimit: Int? = nil
  ) {
    precondition(memoryLimit ?? 1 > 0, "a memory limit is at least one byte")
    let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let limit =
      memoryLimit.map { MemoryLedger.Limit.program($0) } ?? MachineMemory.limit().map { .machine($0) }
      ?? .none
    core = EngineCore(
      catalogue: catalogue, clock: clock, workers: workers ?? min(4, processors), memory: MemoryLedger(limit))
  }

  deinit { core.shutDown() }

  /// The clock of all graphs on this engine.
  public var clock: Clock.Kind { core.clock }

  /// Creates every node of a plan and allocates all its memory, without starting it. Control side; may open files.
  /// - Parameters:
  ///   - plan: a checked graph whose node types are in the engine's catalogue.
  ///   - observesEvents: false omits the delivery of node events (`GraphRun.events` then has only the run's own), for many
  ///     instances at the lowest cost.
  /// - Throws: which node could not be created, and why; that the run could take more memory than the graph, the program or the
  ///   machine allows, and which links claim it; or that a running graph refuses further sessions (its overload steps).
  public func prepare(_ plan: GraphPlan, observesEvents: Bool = true) throws(StartProblem) -> GraphRun {
    guard !plan.nodes.isEmpty else { throw StartProblem(node: "", text: "the graph has no node") }
    try core.checkThreads()
    try core.checkRoom()
    return try RunBuilder.build(plan, on: self, observesEvents: observesEvents)
  }

  /// Checks whether the given runs fit into memory together with the present ones. Claims nothing: `prepare` checks again, run by
  /// run. Any thread; costs a pass over each plan.
  /// - Parameters:
  ///   - plans: checked graphs, and the number of runs of each.
  ///   - observesEvents: as it will be passed to `prepare`.
  /// - Throws: how much all runs can take, what the limit is, and which links claim most.
  public func checkMemory(
    of plans: [(plan: GraphPlan, count: Int)], observesEvents: Bool = true
  ) throws(StartProblem) {
    let clock = core.clock
    try core.memory.check(
      plans.map { ($0.plan, PlanMemory($0.plan, clock: clock, observesEvents: observesEvents), $0.count) })
  }

  /// The most bytes the present runs can take, and the limit of their sum; nil when neither the program nor the system sets one.
  public var memory: (claimed: Int, limit: Int?) { (core.memory.claimedBytes, core.memory.limitBytes) }

  /// `prepare`, then `start`.
  public func start(_ plan: GraphPlan, observesEvents: Bool = true) throws(StartProblem) -> GraphRun {
    let run = try prepare(plan, observesEvents: observesEvents)
    run.start()
    return run
  }

  /// For each worker thread its name and the time it spent in nodes and scheduling, in nanoseconds.
  public var workerLoads: [(name: String, busy: Nanoseconds)] {
    core.allWorkers.map { ($0.name, TickScale.machine.nanoseconds(UInt64($0.busyTicks.current))) }
  }

  /// A reader of the traces that the workers keep. Each read returns the spans since the previous one.
  /// - Parameter holdsClock: true: a virtual clock waits for this reader, so that no span is lost. Keep reading until you drop it:
  ///   time does not advance while it is behind. One such reader at a time.
  public func makeTraceReader(holdsClock: Bool = false) -> TraceReader {
    TraceReader(core, holdsClock: holdsClock)
  }
}
