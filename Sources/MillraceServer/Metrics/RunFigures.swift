internal import MillraceCore
public import MillraceEngine

/// The figures of an engine and of its runs, as metrics: for `MetricsServer`, for `MetricsPublisher`, and for pages of your own.
///
/// Runs of the same graph are summed, so that a thousand sessions make no more lines than one; of maxima the largest is given. A run that
/// has stopped stays in the counters and is released with the next call of `families`. Thread-safe. Nothing is read until then, and nothing
/// here runs on a worker.
public final class RunFigures: Sendable {
  private struct Graph {
    var runs: [GraphRun] = []
    var ended = ReportSums()
  }

  private struct State {
    var graphs: [String: Graph] = [:]
    var held = 0
    /// Runs held when those that had stopped were last released.
    var heldAfterSweep = 0
  }

  private let engine: Engine
  private let state = Locked(State())

  /// Runs held in any case before those that have stopped are looked for.
  private static let sweepAt = 64

  /// The figures of an engine, without a run yet. Keeps the engine.
  public init(_ engine: Engine) { self.engine = engine }

  /// Counts a run from now on. Best before it starts. Cheap but for every so many runs, when those that have stopped are released.
  /// - Parameters:
  ///   - run: a run of the engine; once.
  ///   - graph: what it is counted under, the label `graph`; nil: the graph's name.
  public func add(_ run: GraphRun, as graph: String? = nil) {
    let mustSweep = state.withLock { state in
      state.graphs[graph ?? run.name, default: Graph()].runs.append(run)
      state.held += 1
      return state.held > 2 * state.heldAfterSweep + Self.sweepAt
    }
    if mustSweep { _ = sums() }
  }

  /// Everything that is counted, now. Takes some microseconds for each node of every present run: call it where that may be, not on an
  /// event loop.
  public func families() -> [MetricFamily] {
    let sums = sums()
    return FigureFamilies.ofEngine(engine) + FigureFamilies.ofRuns(sums)
  }

  private func sums() -> [String: GraphSums] {
    let graphs = state.withLock { $0.graphs }
    var sums: [String: GraphSums] = [:]
    var stopped: [String: [ObjectIdentifier: RunReport]] = [:]
    for (name, graph) in graphs {
      var present = ReportSums()
      var all = graph.ended
      for run in graph.runs {
        let report = run.report()
        if report.phase == .stopped {
          stopped[name, default: [:]][ObjectIdentifier(run)] = report
          all.addEnded(report)
        } else {
          present.add(report)
          all.add(report)
        }
      }
      sums[name] = GraphSums(present: present, all: all)
    }
    release(stopped)
    return sums
  }

  private func release(_ stopped: [String: [ObjectIdentifier: RunReport]]) {
    state.withLock { state in
      for (name, reports) in stopped {
        guard var graph = state.graphs[name] else { continue }
        var left: [GraphRun] = []
        // Another look may have released some of them already.
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
      state.held = state.graphs.values.reduce(0) { $0 + $1.runs.count }
      state.heldAfterSweep = state.held
    }
  }
}

/// The runs of one graph: those that are there now, and all that ever were.
struct GraphSums: Sendable {
  var present: ReportSums
  var all: ReportSums
}
