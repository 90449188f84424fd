public import MillraceEngine

/// Who is to know of a run: a log, a tracer, figures. Any of them may be missing.
public struct RunObservers: Sendable {
  /// Gets the run's events.
  public var log: RunLog?
  /// Gets the turns of the run's dialogue.
  public var tracer: TurnTracer?
  /// Counts the run.
  public var figures: RunFigures?

  /// Observers from their parts.
  public init(log: RunLog? = nil, tracer: TurnTracer? = nil, figures: RunFigures? = nil) {
    self.log = log
    self.tracer = tracer
    self.figures = figures
  }

  /// Begins to observe a run. Call it before the run starts.
  /// - Returns: a task that ends when the run has stopped and everything was handed on.
  @discardableResult
  public func observe(_ run: GraphRun) -> Task<Void, Never> {
    figures?.add(run)
    // Before anything else runs: a listener gets what comes from now on.
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
