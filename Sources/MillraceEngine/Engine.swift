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
/// A node is a cell on its graph's home worker; packets cross threads only between lanes. Thread-safe. A run keeps its engine
/// alive; the threads end with the last reference to the engine and its runs.
public final class Engine: Sendable {
  let core: EngineCore

  /// Starts the workers.
  /// - Parameters:
  ///   - catalogue: the node types graphs may use.
  ///   - clock: `realtime`, or `virtual`: time then stands still while anything is left to do, graphs run as fast as the machine
  ///     can, and every run of a graph gives the same packets in the same order.
  ///   - workers: voice workers; nil: one a processor, four at most. Beside them runs one worker for bulk work (on a
  ///     virtual clock all nodes of a graph share one thread).
  ///   - memoryLimit: bytes that all runs together may take at most, as `PlanMemory` counts them, at least 1; nil: as many as this
  ///     machine has, or its control group allows (`MachineMemory`). A run that would not fit is refused. The limit holds in place of
  ///     the machine's, also when it is larger: for links that will never be full all at once.
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

  /// The clock all graphs of this engine run by.
  public var clock: Clock.Kind { core.clock }

  /// Makes every node of a plan and gets all its memory, but moves nothing yet. Control side; may open files.
  /// - Parameters:
  ///   - plan: a checked graph whose node types are in the engine's catalogue.
  ///   - observesEvents: false leaves out what carries events to the program (`GraphRun.events` then has only the run's own),
  ///     for many instances at the lowest cost.
  /// - Throws: which node could not be made, and why; that the run could take more memory than the graph, the program or the machine
  ///   allows, and which links claim it; or that the machine has no room for another session, when a running graph says so (its
  ///   steps against overload).
  public func prepare(_ plan: GraphPlan, observesEvents: Bool = true) throws(StartProblem) -> GraphRun {
    guard !plan.nodes.isEmpty else { throw StartProblem(node: "", text: "the graph has no node") }
    try core.checkThreads()
    try core.checkRoom()
    return try RunBuilder.build(plan, on: self, observesEvents: observesEvents)
  }

  /// Refuses what could not be run at the same time, beside the present runs, for want of memory. Claims nothing: `prepare` looks
  /// again, run by run. Any thread; costs a pass over each plan.
  /// - Parameters:
  ///   - plans: checked graphs, and how many runs there are to be of each.
  ///   - observesEvents: as `prepare` will be told.
  /// - Throws: how much all runs can take, what the limit is, and which links claim most.
  public func checkMemory(
    of plans: [(plan: GraphPlan, count: Int)], observesEvents: Bool = true
  ) throws(StartProblem) {
    let clock = core.clock
    try core.memory.check(
      plans.map { ($0.plan, PlanMemory($0.plan, clock: clock, observesEvents: observesEvents), $0.count) })
  }

  /// Bytes that the present runs can take at most, and the limit of their sum; nil when the program sets none and the system
  /// tells none.
  public var memory: (claimed: Int, limit: Int?) { (core.memory.claimedBytes, core.memory.limitBytes) }

  /// `prepare`, then `start`.
  public func start(_ plan: GraphPlan, observesEvents: Bool = true) throws(StartProblem) -> GraphRun {
    let run = try prepare(plan, observesEvents: observesEvents)
    run.start()
    return run
  }

  /// What each worker thread has done: its name and the time it spent in nodes and scheduling, in nanoseconds.
  public var workerLoads: [(name: String, busy: Nanoseconds)] {
    core.allWorkers.map { ($0.name, TickScale.machine.nanoseconds(UInt64($0.busyTicks.current))) }
  }

  /// Reads the trace that every worker keeps. Each call gives what came since the last one of the same reader.
  /// - Parameter holdsClock: true: a virtual clock waits for this reader, so that no call is lost. Keep reading until it
  ///   is dropped: time stands still when it falls behind. One such reader at a time.
  public func makeTraceReader(holdsClock: Bool = false) -> TraceReader {
    TraceReader(core, holdsClock: holdsClock)
  }
}
