internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// One call of `run`: starts everything, watches it, and tells how it went.
struct RunSession: ~Copyable {
  /// A graph file with its instances.
  struct Graph {
    let title: String
    let plans: [GraphPlan]
  }

  private let graphs: [Graph]
  private let duration: Nanoseconds?
  private let report: String?
  private let isQuiet: Bool
  private let engine: Engine
  private let board = EventBoard()
  private var runs: [GraphRun] = []
  private var trace: TraceFile?
  private var startedAt: Nanoseconds = 0
  private var endedAt: Nanoseconds = 0
  private var isDraining = false
  private var isStopping = false
  private let out = Output.error

  /// How often signals and the time are looked at.
  private static let tick: Nanoseconds = .milliseconds(50)
  /// How often the trace is read: a worker on a virtual clock makes a million calls a second and remembers 32,768.
  private static let traceTick: Nanoseconds = .milliseconds(5)
  private static let virtualTick: Nanoseconds = .milliseconds(1)
  /// Runs whose events are listened to; more would drown each other on a screen.
  private static let watchedRuns = 16

  init(
    _ graphs: [Graph], duration: Nanoseconds?, workers: Int?, report: String?, trace: String?, isQuiet: Bool
  ) throws {
    self.graphs = graphs
    self.duration = duration
    self.report = report
    self.isQuiet = isQuiet
    let clock = try Self.commonClock(of: graphs)
    let file = try trace.map { TextFileBox(try TextFile(creating: $0)) }
    if let report { _ = try TextFile(creating: report) }
    engine = Engine(catalogue: RunnerContext.catalogue, clock: clock, workers: workers)
    if let file { self.trace = TraceFile(engine, file: file.take(), start: millrace_monotonic_ns()) }
  }

  /// All graphs of a process run by one clock.
  private static func commonClock(of graphs: [Graph]) throws -> Clock.Kind {
    let plans = graphs.flatMap(\.plans)
    let clock = plans.first?.clock ?? .realtime
    if let other = plans.first(where: { $0.clock != clock }) {
      Output.error.write(
        "error: \(Problem.quoted(plans[0].name)) asks for the \(clock.rawValue) clock and \(Problem.quoted(other.name)) for the \(other.clock.rawValue) one; give --clock, or run them apart\n"
      )
      throw ExitStatus.refused
    }
    return clock
  }

  // MARK: From start to end

  mutating func perform() throws {
    if !isQuiet { for graph in graphs { tellLinks(graph) } }
    // Before nodes are made: that may take long, and may already have something to clean up.
    Signals.listen()
    try prepare()
    var progress = Progress(
      runs, title: graphs.map(\.title).joined(separator: " + "), board: board, output: out,
      redraws: !writesToScreen, isQuiet: isQuiet)
    startedAt = millrace_monotonic_ns()
    for run in runs { run.start() }
    watch(&progress)
    endedAt = millrace_monotonic_ns()
    waitForEvents()
    progress.finish()
    let status = tellEnd()
    if status != .done { throw status }
  }

  /// The formats of every link, before anything starts.
  private func tellLinks(_ graph: Graph) {
    guard let plan = graph.plans.first, !plan.links.isEmpty else { return }
    let count = graph.plans.count > 1 ? " (\(graph.plans.count) instances)" : ""
    out.write(
      out.style.paint(graph.title, .heading) + "\(count)\n" + PlanExplanation(plan).linkText(out.style))
  }

  private mutating func prepare() throws {
    let all = graphs.flatMap(\.plans)
    let isWatched = all.count <= Self.watchedRuns
    for plan in all {
      do throws(StartProblem) {
        let run = try engine.prepare(plan, observesEvents: isWatched)
        // What its own events say of failed nodes decides the exit status, however many runs there are.
        if isWatched || plan.nodes.contains(where: { $0.onError != .stop }) {
          board.watch(run, label: label(of: plan))
        }
        runs.append(run)
      } catch {
        GraphOptions.tell(Problems([Self.problem(error, plan)]))
        for run in runs { run.stop() }
        throw ExitStatus.refused
      }
      if Signals.interruptCount > 0 || Signals.isTerminated {
        for run in runs { run.stop() }
        throw ExitStatus.interrupted
      }
    }
  }

  /// What stands in front of the names of a run's nodes, so that those of several runs can be told apart.
  private func label(of plan: GraphPlan) -> String {
    graphs.count == 1 && graphs[0].plans.count == 1 ? "" : "\(plan.name): "
  }

  /// A node's refusal to start, at its place in the graph file.
  private static func problem(_ start: StartProblem, _ plan: GraphPlan) -> Problem {
    guard let node = plan.nodes.first(where: { $0.name == start.node }) else {
      return Problem(start.text, hint: start.cure)
    }
    return node.problem(NodeProblem(start.text, cure: start.cure))
  }

  // MARK: Watching

  private mutating func watch(_ progress: inout Progress) {
    var first = 0
    while first < runs.count {
      heedSignals()
      var wait = trace == nil ? Self.tick : Self.traceTick
      if let left = timeLeft() {
        if left <= 0 { drain() } else { wait = min(wait, left) }
      }
      if runs[first].waitUntilStopped(timeout: wait) != nil {
        first += 1
        continue
      }
      trace?.take()
      progress.update(now: millrace_monotonic_ns())
    }
    progress.clear()
  }

  /// Time on the wall until the next look at `--duration` is due; nil when there is nothing to wait for.
  private func timeLeft() -> Nanoseconds? {
    guard let duration, !isDraining else { return nil }
    if engine.clock == .realtime { return startedAt + duration - millrace_monotonic_ns() }
    // Virtual time runs as fast as the machine: all there is to do is look often.
    let time = runs.map(\.time).max() ?? 0
    return time >= duration ? 0 : Self.virtualTick
  }

  private mutating func heedSignals() {
    if Signals.interruptCount >= 2 && !isStopping {
      isStopping = true
      for run in runs { run.stop() }
    } else if (Signals.interruptCount == 1 || Signals.isTerminated) && !isDraining {
      drain()
    }
  }

  private mutating func drain() {
    isDraining = true
    for run in runs { run.drain() }
  }

  /// True when a node writes to the screen itself: meters would be drawn over its lines.
  private var writesToScreen: Bool {
    Output.standard.isTerminal
      && graphs.flatMap(\.plans).contains { plan in
        plan.nodes.contains {
          $0.isSink && ($0.parameters["path"] == "-" || $0.contract.type == "text.print")
        }
      }
  }

  /// Events of the last moments are still on their way when a run has stopped; half a second is far more than they need.
  private func waitForEvents() {
    let deadline = millrace_monotonic_ns() + .milliseconds(500)
    while !board.isComplete && millrace_monotonic_ns() < deadline { usleep(1_000) }
  }

  // MARK: The end

  private mutating func tellEnd() -> ExitStatus {
    let reports = runs.map { $0.report() }
    var status: ExitStatus = isStopping ? .interrupted : .done
    if board.hasIsolated { status = .failed }
    if !isQuiet { tellSummaries(reports) }
    for (run, report) in zip(runs, reports) {
      guard let failure = report.failure else { continue }
      status = .failed
      GraphOptions.tell(
        Problems([Self.problem(StartProblem(node: failure.node, text: failure.text), run.plan)]))
    }
    if trace != nil {
      let (failure, lost) = trace!.finish()
      if let failure { tellUnwritable("trace", failure, &status) }
      if lost > 0 && !isQuiet { out.write("trace: \(lost) calls came too fast and are missing\n") }
    }
    if let report {
      do {
        try TextFile.write(RunReportFile.json(zip(runs.map(\.plan), reports).map { ($0, $1) }), to: report)
      } catch {
        if status == .done { status = .usage }
      }
    }
    return status
  }

  private func tellUnwritable(_ what: String, _ failure: String, _ status: inout ExitStatus) {
    out.write("error: the \(what) could not be written: \(failure); make room or choose another place\n")
    if status == .done { status = .usage }
  }

  private func tellSummaries(_ reports: [RunReport]) {
    var first = 0
    for graph in graphs {
      var summary = Summary(graph.plans[0], title: graph.title, wall: endedAt - startedAt)
      for (plan, report) in zip(graph.plans, reports[first...]) {
        summary.add(report, plan, label: label(of: plan))
      }
      first += graph.plans.count
      out.write("\n" + summary.text(out.style, board: board))
    }
  }
}

/// Carries a file through a closure that cannot hand out what may not be copied.
private final class TextFileBox {
  private var file: TextFile?
  init(_ file: consuming TextFile) { self.file = consume file }
  func take() -> TextFile { file.take()! }
}
