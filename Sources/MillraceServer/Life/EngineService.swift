internal import MillraceCore
public import MillraceEngine
public import MillraceGraph
public import ServiceLifecycle

/// An engine as a service of a `ServiceGroup`: runs come and go while it lasts, such as one for each call or request.
///
/// A graceful shutdown refuses new runs and drains the present ones, side by side; what has not ended after `drainTime` is stopped.
/// Cancellation stops all at once. A run that fails ends alone: look at its report. Put the service in front of those that start runs, since
/// a group shuts down its services last to first. Thread-safe.
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

  /// - Parameters:
  ///   - engine: the engine of all runs.
  ///   - drainTime: how long a graceful shutdown may drain.
  ///   - observers: who is to know of the runs.
  public init(
    _ engine: Engine, drainTime: Duration = .seconds(10), observers: RunObservers = RunObservers()
  ) {
    self.engine = engine
    self.drainTime = drainTime
    self.observers = observers
  }

  /// Runs that have not stopped.
  public var runCount: Int { state.withLock { $0.runs.count } }

  /// Prepares and starts a run.
  /// - Throws: why it could not be prepared, or that the service shuts down.
  public func start(_ plan: GraphPlan) throws(StartProblem) -> GraphRun {
    guard state.withLock({ $0.isOpen }) else { throw Self.closed }
    let wants = observers.log != nil || observers.tracer != nil
    let run = try engine.prepare(plan, observesEvents: wants)
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
    Task {
      _ = await run.wait()
      await observing.value
      state.withLock { $0.runs[ObjectIdentifier(run)] = nil }
    }
    return run
  }

  private static let closed = StartProblem(
    node: "", text: "the service shuts down and starts no more runs", cure: "try another server")

  /// Lasts until the group shuts down, and until the present runs have ended.
  /// - Throws: `CancellationError` when the task was cancelled.
  public func run() async throws {
    do { try await gracefulShutdown() } catch {
      // Cancelled: handled below.
    }
    let present = state.withLock { state in
      state.isOpen = false
      return Array(state.runs.values)
    }
    let drainTime = drainTime
    await withTaskGroup(of: Void.self) { group in
      for (run, observing) in present {
        group.addTask {
          _ = await run.drain(for: drainTime)
          await observing.value
        }
      }
    }
    try Task.checkCancellation()
  }
}
