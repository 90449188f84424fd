internal import MillraceCore
public import MillraceEngine
public import MillraceGraph
public import ServiceLifecycle

/// An engine as a service of a `ServiceGroup`. Runs are started while the service is running, for example one for each call or request.
///
/// A graceful shutdown rejects new runs and drains the active ones concurrently; runs that have not ended after `drainTime` are stopped.
/// Cancellation stops all runs immediately. A failed run does not affect the others: check its report. List this service before the
/// services that start runs, because a group shuts down its services in reverse order. Thread-safe.
public final class EngineService: Service {
  private struct State {
    var isOpen = true
    var runs: [ObjectIdentifier: (run: GraphRun, observing: Task<Void, Never>)] = [:]
  }

  /// The engine.
  public let engine: Engine
  private let drainTime: Duration
  private let observers: RunObservers
  private let state = Locked(State())

  /// Creates the service of an engine.
  /// - Parameters:
  ///   - engine: runs all graphs of the service.
  ///   - drainTime: longest time that a graceful shutdown drains.
  ///   - observers: observe every run of the service.
  public init(
    _ engine: Engine, drainTime: Duration = .seconds(10), observers: RunObservers = RunObservers()
  ) {
    self.engine = engine
    self.drainTime = drainTime
    self.observers = observers
  }

  /// Number of runs that have not stopped.
  public var runCount: Int { state.withLock { $0.runs.count } }

  /// Prepares and starts a run.
  /// - Throws: the reason why the run cannot be prepared, or that the service is shutting down.
  public func start(_ plan: GraphPlan) throws(StartProblem) -> GraphRun {
    guard state.withLock({ $0.isOpen }) else { throw Self.closed }
    let observesEvents = observers.log != nil || observers.tracer != nil
    let run = try engine.prepare(plan, observesEvents: observesEvents)
    let observing = observers.observe(run)
    let isOpen = state.withLock { state in
      if state.isOpen { state.runs[ObjectIdentifier(run)] = (run, observing) }
      return state.isOpen
    }
    guard isOpen else {
      run.stop()
      throw Self.closed
    }
    run.start()
    // A shutdown that began meanwhile found the run not started, and could not drain it.
    if !state.withLock({ $0.isOpen }) { run.drain() }
    Task {
      _ = await run.wait()
      await observing.value
      state.withLock { $0.runs[ObjectIdentifier(run)] = nil }
    }
    return run
  }

  private static let closed = StartProblem(
    node: "", text: "the service is shutting down and starts no more runs", cure: "try another server")

  /// Runs until the group shuts down and all active runs have ended.
  /// - Throws: `CancellationError` when the task was cancelled.
  public func run() async throws {
    do { try await gracefulShutdown() } catch {
      // Cancelled: handled below.
    }
    let active = state.withLock { state in
      state.isOpen = false
      return Array(state.runs.values)
    }
    let drainTime = drainTime
    await withTaskGroup(of: Void.self) { group in
      for (run, observing) in active {
        group.addTask {
          _ = await run.drain(for: drainTime)
          await observing.value
        }
      }
    }
    try Task.checkCancellation()
  }
}
