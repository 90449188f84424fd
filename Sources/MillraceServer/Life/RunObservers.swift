public import MillraceEngine

/// The observers of a run: a log, a tracer and metrics. Each is optional.
public struct RunObservers: Sendable {
  /// Logs the run's events.
  public var log: RunLog?
  /// Traces the turns of the run's dialogue.
  public var tracer: TurnTracer?
  /// Includes the run in an engine's metrics.
  public var metrics: EngineMetrics?

  /// Creates a set of observers.
  public init(log: RunLog? = nil, tracer: TurnTracer? = nil, metrics: EngineMetrics? = nil) {
    self.log = log
    self.tracer = tracer
    self.metrics = metrics
  }

  /// Starts observing a run. Call it before the run starts.
  /// - Returns: a task that ends when the run has stopped and all its events have been delivered.
  @discardableResult
  public func observe(_ run: GraphRun) -> Task<Void, Never> {
    metrics?.add(run)
    // Subscribe now, not in the task: a listener receives only the events posted after this.
    let logged = log.map { ($0, run.events) }
    let traced = tracer.map { ($0, run.events) }
    return Task {
      await withTaskGroup(of: Void.self) { group in
        if let (log, events) = logged { group.addTask { await log.follow(events, of: run) } }
        if let (tracer, events) = traced { group.addTask { await tracer.follow(events, of: run) } }
      }
    }
  }
}
