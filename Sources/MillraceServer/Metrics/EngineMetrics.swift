internal import MillraceCore
public import MillraceEngine

/// The metrics of an engine and its runs, for `MetricsServer`, `MetricsPublisher` and pages of your own.
///
/// Runs of the same graph are added up, so a thousand sessions need no more lines than one; of a maximum the greatest is reported. A run that
/// has stopped stays in the counters; the next call of `families` releases it. Reports are read only when `families` is called, and never
/// on a worker. Thread-safe.
public final class EngineMetrics: Sendable {
  private struct Graph {
    var runs: [GraphRun] = []
    var ended = ReportTotals()
  }

  private struct State {
    var graphs: [String: Graph] = [:]
    var runCount = 0
    /// `runCount` when stopped runs were last released.
    var countAfterSweep = 0
  }

  private let engine: Engine
  private let state = Locked(State())

  /// The first sweep for stopped runs happens above this many runs.
  private static let sweepAt = 64

  /// The metrics of an engine, without any runs. Keeps a reference to the engine.
  public init(_ engine: Engine) { self.engine = engine }

  /// Includes a run from now on. Best called before the run starts. Cheap, except that each time the number of runs has doubled, stopped
  /// runs are released.
  /// - Parameters:
  ///   - run: a run of the engine; add it once.
  ///   - graph: value of the label `graph`; nil for the graph's name.
  public func add(_ run: GraphRun, as graph: String? = nil) {
    let mustSweep = state.withLock { state in
      state.graphs[graph ?? run.name, default: Graph()].runs.append(run)
      state.runCount += 1
      return state.runCount > 2 * state.countAfterSweep + Self.sweepAt
    }
    if mustSweep { _ = collect() }
  }

  /// The current values of all metrics. Takes some microseconds for each node of every current run, so do not call it on an event loop.
  public func families() -> [MetricFamily] {
    MetricFamilies.ofEngine(engine) + MetricFamilies.ofRuns(collect())
  }

  /// Reads the reports of all runs and releases the runs that have stopped.
  private func collect() -> [String: GraphTotals] {
    let graphs = state.withLock { $0.graphs }
    var totals: [String: GraphTotals] = [:]
    var stopped: [String: [ObjectIdentifier: RunReport]] = [:]
    for (name, graph) in graphs {
      var current = ReportTotals()
      var all = graph.ended
      for run in graph.runs {
        let report = run.report()
        if report.phase == .stopped {
          stopped[name, default: [:]][ObjectIdentifier(run)] = report
          all.addEnded(report)
        } else {
          current.add(report)
          all.add(report)
        }
      }
      totals[name] = GraphTotals(current: current, all: all)
    }
    release(stopped)
    return totals
  }

  private func release(_ stopped: [String: [ObjectIdentifier: RunReport]]) {
    state.withLock { state in
      for (name, reports) in stopped {
        guard var graph = state.graphs[name] else { continue }
        var left: [GraphRun] = []
        // A concurrent call may have released some of them already.
        for run in graph.runs {
          if let report = reports[ObjectIdentifier(run)] {
            graph.ended.addEnded(report)
          } else {
            left.append(run)
          }
        }
        graph.runs = left
        state.graphs[name] = graph
      }
      state.runCount = state.graphs.values.reduce(0) { $0 + $1.runs.count }
      state.countAfterSweep = state.runCount
    }
  }
}

/// The totals of one graph: its current runs, and all runs so far.
struct GraphTotals: Sendable {
  var current: ReportTotals
  var all: ReportTotals
}
