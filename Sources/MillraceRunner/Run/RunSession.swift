internal import CMillraceSys
internal import Glibc
internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceServer

/// One call of `run` or `talk`: starts the graphs, observes them, and reports the results.
struct RunSession: ~Copyable {
  private(set) var graphs: [GraphInstances]
  private let duration: Nanoseconds?
  let report: String?
  /// Opened before anything starts, so that an error is reported early.
  var reportFile: TextFile?
  private let inputFiles: InputFileLocks
  /// Name of the run in `top`.
  private let name: String?
  let isQuiet: Bool
  private let control: Control?
  let golden: GoldenRun?
  private let limits: ProcessLimits
  private let engine: Engine
  private let readers = ReaderTasks()
  let monitor: EventMonitor
  private(set) var runs: [GraphRun] = []
  var trace: TraceFile?
  /// Record the sound of the first run of each graph; empty without an HTML report.
  private(set) var waves: [WaveRecorder] = []
  private var statistics: StatisticsSocket?
  /// Serves metrics over HTTP, if requested.
  private let metrics: RunMetrics?
  /// Writes the turns at the end, if requested.
  var turnTrace: TurnTraceFile?
  private(set) var startedAt: Nanoseconds = 0
  private(set) var endedAt: Nanoseconds = 0
  private var isDraining = false
  /// The interactive dialogue, shown instead of the meters.
  private let talk: Talk?
  private let takesKeys: Bool
  private(set) var isStopping = false
  let out = Output.error

  /// Interval at which signals are checked.
  private static let tick: Nanoseconds = .milliseconds(50)
  /// Interval at which the trace is read: a worker on a virtual clock makes a million calls a second and records 32,768.
  private static let traceTick: Nanoseconds = .milliseconds(5)
  /// Interval at which keys are read: a tenth of a delay that users notice.
  private static let talkTick: Nanoseconds = .milliseconds(10)
  /// Most runs whose events are shown; more would be unreadable.
  private static let mostObservedRuns = 16

  init(
    _ graphs: [GraphInstances], duration: Nanoseconds?, workers: Int?, memory: Int? = nil, report: String?,
    trace: String?, name: String?,
    control: ControlOptions?, golden: GoldenOptions?, observing: ObservingOptions, isQuiet: Bool,
    limits: ProcessLimits, talk: Talk? = nil, takesKeys: Bool = false
  ) throws {
    // Before anything else, because the following starts threads and Dispatch.
    try ProcessLimits.checkFiles(ProcessLimits.filesToBegin)
    try limits.checkMemory(forInstance: 1, of: graphs.reduce(0) { $0 + $1.count })
    let clock = try Self.commonClock(of: graphs)
    let inputFiles = try InputFileLocks(graphs.map(\.first))
    let control = try control.flatMap { try $0.control == nil ? nil : Control($0) }
    let traceFile = try trace.map { TextFileBox(try TextFile(creating: $0)) }
    let reportFile = try report.map { TextFileBox(try TextFile(creating: $0)) }
    let turnTrace = try observing.otel.map { TextFileBox(try TextFile(creating: $0)) }
    if golden?.isGolden == true { try control?.rejectLiveInput() }
    let golden = try golden.flatMap { try GoldenRun($0, out: Output.error) }
    let engine = Engine(
      catalogue: RunnerContext.catalogue, clock: clock, workers: workers, memoryLimit: memory)
    metrics = try observing.metrics.map { try RunMetrics(engine, $0, plain: observing.metricsPlain) }
    monitor = EventMonitor(readers)
    self.engine = engine
    self.graphs = graphs
    self.limits = limits
    self.duration = duration
    self.report = report
    self.inputFiles = inputFiles
    self.name = name
    self.isQuiet = isQuiet
    self.talk = talk
    self.takesKeys = takesKeys
    self.control = control
    self.golden = golden
    if let reportFile { self.reportFile = reportFile.take() }
    if let turnTrace { self.turnTrace = TurnTraceFile(turnTrace.take()) }
    if let traceFile { self.trace = TraceFile(engine, file: traceFile.take(), title: title) }
  }

  /// The titles of all graphs.
  var title: String { graphs.map(\.title).joined(separator: " + ") }

  /// The clock of all graphs. Graphs with different clocks cannot run together.
  private static func commonClock(of graphs: [GraphInstances]) throws -> Clock.Kind {
    let plans = graphs.map(\.first)
    let clock = plans.first?.clock ?? .realtime
    if let other = plans.first(where: { $0.clock != clock }) {
      Output.error.write(
        "error: \(Problem.quoted(plans[0].name)) uses the \(clock.rawValue) clock and \(Problem.quoted(other.name)) the \(other.clock.rawValue) clock; set --clock, or run them separately\n"
      )
      throw ExitStatus.refused
    }
    return clock
  }

  // MARK: Start and end

  mutating func perform() throws {
    if !isQuiet { for graph in graphs { printLinks(graph) } }
    if let metrics, !isQuiet || metrics.hasChosenPort || talk != nil { out.write(metrics.addressLine) }
    // Dispatch opens its descriptors with the first task. Start one now, while there are free descriptors.
    readers.start {}
    _ = readers.wait()
    // Before nodes are created, because that can take long and may leave something to clean up.
    Signals.listen()
    try prepare()
    var progress = Progress(
      runs, title: title, monitor: monitor, output: out,
      redraws: !writesToScreen && control?.answersOnError != true, isQuiet: isQuiet)
    openStatistics()
    trace?.begin(runs)
    if let talk { talk.begin(runs[0], readers, takesKeys: takesKeys) }
    startedAt = millrace_monotonic_ns()
    turnTrace?.begin()
    for run in runs {
      if let duration { run.drain(at: .nanoseconds(duration)) }
      run.start()
    }
    control?.start()
    observe(&progress)
    // After a second signal, do not wait for programs that ignore the end of their node.
    if isStopping { Programs.killAll() }
    endedAt = millrace_monotonic_ns()
    statistics = nil
    metrics?.stop()
    for message in control?.finish() ?? [] { out.write("control: \(message)\n") }
    // When a run has stopped, its last events and sound may not have been read yet.
    _ = readers.wait()
    talk?.finish(monitor)
    progress.finish()
    let status = reportResults()
    if status != .done { throw status }
  }

  /// Prints the format of every link, before anything starts.
  private func printLinks(_ graph: GraphInstances) {
    guard !graph.first.links.isEmpty else { return }
    let count = graph.count > 1 ? " (\(graph.count) instances)" : ""
    out.write(
      out.style.paint(graph.title, .heading) + "\(count)\n" + PlanExplanation(graph.first).linkText(out.style)
    )
  }

  /// Total number of runs.
  private var total: Int { graphs.reduce(0) { $0 + $1.count } }

  /// Creates all runs. On failure, stops those that have been created.
  private mutating func prepare() throws {
    do {
      try checkMemory()
      for index in graphs.indices { try prepareInstances(of: index) }
      try ProcessLimits.checkFiles(ProcessLimits.filesToRun)
      try prepareControl()
    } catch {
      for run in runs { run.stop() }
      throw error
    }
  }

  /// Rejects graphs that do not fit into memory, before the first of many instances is created.
  private func checkMemory() throws(ExitStatus) {
    do throws(StartProblem) {
      try engine.checkMemory(of: graphs.map { ($0.first, $0.count) }, observesEvents: observesEvents)
    } catch {
      GraphOptions.report(Problems([Problem(error.text, hint: error.cure)]))
      throw .refused
    }
  }

  private mutating func prepareInstances(of index: Int) throws {
    var capacity = InstanceCapacity(limits, count: graphs[index].count)
    for number in 1...graphs[index].count {
      try limits.checkMemory(forInstance: runs.count + 1, of: total)
      let plan = try graphs[index].plan(number)
      try inputFiles.add(plan)
      let run = try prepare(plan)
      if wantsPage && number == 1 { waves.append(WaveRecorder(run, readers)) }
      metrics?.metrics.add(run, as: graphs[index].title)
      runs.append(run)
      try capacity.check(run, number: number)
      if Signals.isDrainRequested { throw ExitStatus.interrupted }
    }
  }

  /// True when there are few enough runs to show their events.
  private var showsEvents: Bool { total <= Self.mostObservedRuns }
  private var observesEvents: Bool { showsEvents || golden != nil || turnTrace != nil }

  private func prepare(_ plan: GraphPlan) throws -> GraphRun {
    golden?.expect(plan)
    do throws(StartProblem) {
      let run = try engine.prepare(plan, observesEvents: observesEvents)
      golden?.observe(run)
      // However many runs there are, the exit status depends on events about failed nodes, and turns are traced.
      if showsEvents || turnTrace != nil || plan.nodes.contains(where: { $0.onError != .stop }) {
        monitor.observe(run, label: label(of: plan))
      }
      return run
    } catch {
      GraphOptions.report(Problems([Self.problem(error, plan)]))
      throw ExitStatus.refused
    }
  }

  /// Passes the runs to the control, which reads the commands that must be known before the start.
  private func prepareControl() throws {
    let numbered = graphs.flatMap { graph in (1...graph.count).map { (graph.title, $0) } }
    let targets = zip(numbered, runs).map { PendingCommand.Target(graph: $0.0, instance: $0.1, run: $1) }
    try control?.prepare(targets, clock: engine.clock)
  }

  /// The prefix of a run's node names that distinguishes several runs.
  func label(of plan: GraphPlan) -> String {
    graphs.count == 1 && graphs[0].count == 1 ? "" : "\(plan.name): "
  }

  /// The problem of a node that failed to start, with its position in the graph file: that of the parameter or of the node.
  static func problem(_ start: StartProblem, _ plan: GraphPlan) -> Problem {
    guard let node = plan.nodes.first(where: { $0.name == start.node }) else {
      return Problem(start.text, hint: start.cure)
    }
    return node.problem(start.nodeProblem)
  }

  // MARK: Observing

  private mutating func observe(_ progress: inout Progress) {
    var first = 0
    while first < runs.count {
      handleSignals()
      serveStatistics()
      if runs[first].waitUntilStopped(timeout: .nanoseconds(interval)) != nil {
        first += 1
        continue
      }
      trace?.take()
      if let talk {
        talk.update(monitor, now: millrace_monotonic_ns())
      } else {
        progress.update(now: millrace_monotonic_ns())
      }
    }
    progress.clear()
  }

  private var interval: Nanoseconds {
    trace != nil ? Self.traceTick : talk != nil ? Self.talkTick : Self.tick
  }

  private mutating func handleSignals() {
    if Signals.isStopRequested && !isStopping {
      isStopping = true
      for run in runs { run.stop() }
    } else if (Signals.isDrainRequested || talk?.isLeaving == true) && !isDraining {
      drain()
    }
  }

  private mutating func drain() {
    isDraining = true
    metrics?.noteDraining()
    talk?.leave()
    for run in runs { run.drain() }
  }

  /// True when a node writes to the terminal itself: meters would be drawn over its lines.
  private var writesToScreen: Bool {
    Output.standard.isTerminal
      && graphs.map(\.first).contains { plan in
        plan.nodes.contains {
          $0.isSink && ($0.parameters["path"] == "-" || $0.contract.type == "text.print")
        }
      }
  }

  // MARK: Statistics for `top`

  /// Opens the socket that `top` queries. The run continues without it; the failure is reported only if the run has a name.
  private mutating func openStatistics() {
    do throws(RunFolder.Failure) {
      statistics = try StatisticsSocket(RunFolder())
    } catch {
      guard name != nil else { return }
      out.write("\"top\" cannot show this run: \(error.text)\n")
    }
  }

  private func serveStatistics() {
    statistics?.serve {
      RunStatistics.json(
        name ?? title, merged(runs.map { $0.report() }, wall: millrace_monotonic_ns() - startedAt),
        workers: engine.workerLoads)
    }
  }
}

/// Boxes a noncopyable file, because `map` cannot return one.
private final class TextFileBox {
  private var file: TextFile?
  init(_ file: consuming TextFile) { self.file = consume file }
  func take() -> TextFile { file.take()! }
}
