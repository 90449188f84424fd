internal import MillraceCore
public import MillraceEngine
public import ServiceLifecycle

/// A run of a graph as a service of a `ServiceGroup`.
///
/// ```swift
/// let run = try engine.prepare(plan)
/// let group = ServiceGroup(services: [RunService(run)], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// The service starts the run and lasts as long as it. A graceful shutdown drains the graph: sources end, what is inside flows out;
/// what has not ended after `drainTime` is stopped. Cancellation stops it at once. A run that fails throws its `RunFailure`.
///
/// A graph that ends by itself ends its service, which by default cancels the group; give the service's configuration
/// `successTerminationBehavior: .gracefullyShutdownGroup` or `.ignore` where that is not meant.
public struct RunService: Service {
  private let graphRun: GraphRun
  private let drainTime: Duration
  private let observers: RunObservers

  /// - Parameters:
  ///   - run: prepared, not started.
  ///   - drainTime: how long a graceful shutdown may drain.
  ///   - observers: who is to know of the run.
  public init(
    _ run: GraphRun, drainTime: Duration = .seconds(10), observers: RunObservers = RunObservers()
  ) {
    graphRun = run
    self.drainTime = drainTime
    self.observers = observers
  }

  /// Starts the run and waits for its end.
  /// - Throws: `RunFailure` when the run failed, `CancellationError` when the task was cancelled.
  public func run() async throws {
    let (run, drainTime) = (graphRun, drainTime)
    let observing = observers.observe(run)
    let ending = Locked<Task<Void, Never>?>(nil)
    run.start()
    let report = await withTaskCancellationHandler {
      await withGracefulShutdownHandler {
        await run.wait()
      } onGracefulShutdown: {
        ending.withLock { $0 = Task { _ = await run.drain(for: drainTime) } }
      }
    } onCancel: {
      run.stop()
    }
    ending.withLock { $0 }?.cancel()
    await observing.value
    if let failure = report.failure { throw failure }
    try Task.checkCancellation()
  }
}

extension GraphRun {
  /// Drains the run, and stops it when it has not ended within a time, or at once when the task is cancelled.
  /// - Returns: what the run did.
  @discardableResult
  public func drain(for time: Duration) async -> RunReport {
    drain()
    let limit = Task {
      do { try await Task.sleep(for: time) } catch { return }
      stop()
    }
    defer { limit.cancel() }
    return await withTaskCancellationHandler {
      await wait()
    } onCancel: {
      stop()
    }
  }
}
