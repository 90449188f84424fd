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
/// The service starts the run and ends with it. A graceful shutdown drains the graph: its sources end, and queued packets flow out. A run
/// that has not ended after `drainTime` is stopped. Cancellation stops it immediately. A failed run throws its `RunFailure`.
///
/// A graph that ends on its own ends its service, and by default that cancels the group. To prevent this, set
/// `successTerminationBehavior` to `.gracefullyShutdownGroup` or `.ignore` in the service's configuration.
public struct RunService: Service {
  private let graphRun: GraphRun
  private let drainTime: Duration
  private let observers: RunObservers

  /// Creates the service of a run.
  /// - Parameters:
  ///   - run: a prepared run that has not been started.
  ///   - drainTime: longest time that a graceful shutdown drains.
  ///   - observers: observe the run.
  public init(
    _ run: GraphRun, drainTime: Duration = .seconds(10), observers: RunObservers = RunObservers()
  ) {
    graphRun = run
    self.drainTime = drainTime
    self.observers = observers
  }

  /// Starts the run and waits until it has stopped.
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
  /// Drains the run. Stops it when it has not ended within the given time, or immediately when the task is cancelled.
  /// - Returns: the final report.
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
