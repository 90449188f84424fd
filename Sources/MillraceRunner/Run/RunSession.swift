internal import CMillraceSys
internal import Glibc
internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceServer

/// One call of `run`: starts everything, watches it, and tells how it went.
struct RunSession: ~Copyable {
  private(set) var graphs: [GraphInstances]
  private let duration: Nanoseconds?
  let report: String?
  /// Opened before anything starts, so that what cannot be written is told then.
  var reportFile: TextFile?
  private let sources: ReadingClaims
  /// What others see the run under.
  private let name: String?
  let isQuiet: Bool
  private let control: Control?
  let golden: Golden?
  private let limits: ProcessLimits
  private let engine: Engine
  private let readers = Readers()
  let board: EventBoard
  private(set) var runs: [GraphRun] = []
  var trace: TraceFile?
  /// Sound of the first run of each graph; empty without an HTML report.
  private(set) var waves: [WaveRecorder] = []
  private var statistics: StatisticsSocket?
  /// Serves the figures over HTTP, if asked to.
  private let metrics: RunMetrics?
  /// Takes the turns at the end, if asked to.
  var turnTrace: TurnTraceFile?
  private(set) var startedAt: Nanoseconds = 0
  private(set) var endedAt: Nanoseconds = 0
  private var isDraining = false
  /// Who leads a dialogue with the run; shows it in place of the meters.
  private let talk: Talk?
  private let takesKeys: Bool
  private(set) var isStopping = false
  let out = Output.error

  /// How often signals are looked at.
  private static let tick: Nanoseconds = .milliseconds(50)
  /// How often the trace is read: a worker on a virtual clock makes a million calls a second and remembers 32,768.
  private static let traceTick: Nanoseconds = .milliseconds(5)
  /// How often a user's keys are looked at: a tenth of what anybody notices.
  private static let talkTick: Nanoseconds = .milliseconds(10)
  /// Runs whose events are listened to; more would drown each other on a screen.
  private static let watchedRuns = 16

  init(
    _ graphs: [GraphInstances], duration: Nanoseconds?, workers: Int?, memory: Int? = nil, report: String?,
    trace: String?, name: String?,
    control: ControlOptions?, golden: GoldenOptions?, observing: ObservingOptions, isQuiet: Bool,
    limits: ProcessLimits, talk: Talk? = nil, takesKeys: Bool = false
  ) throws {
    // Before anything else: what comes next starts threads, and Dispatch with them.
    try ProcessLimits.checkFiles(ProcessLimits.filesToBegin)
    try limits.checkMemory(forInstance: 1, of: graphs.reduce(0) { $0 + $1.count })
    let clock = try Self.commonClock(of: graphs)
    let sources = try ReadingClaims(graphs.map(\.first))
    let control = try control.flatMap { try $0.control == nil ? nil : Control($0) }
    let traceFile = try trace.map { TextFileBox(try TextFile(creating: $0)) }
    let reportFile = try report.map { TextFileBox(try TextFile(creating: $0)) }
    let turnTrace = try observing.otel.map { TextFileBox(try TextFile(creating: $0)) }
    if golden?.isGolden == true { try control?.refuseLive() }
    let golden = try golden.flatMap { try Golden($0, out: Output.error) }
    let engine = Engine(
      catalogue: RunnerContext.catalogue, clock: clock, workers: workers, memoryLimit: memory)
    metrics = try observing.metrics.map { try RunMetrics(engine, $0, plain: observing.metricsPlain) }
    board = EventBoard(readers)
    self.engine = engine
    self.graphs = graphs
    self.limits = limits
    self.duration = duration
    self.report = report
    self.sources = sources
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

  /// The names of all graphs.
  var title: String { graphs.map(\.title).joined(separator: " + ") }

  /// All graphs of a process run by one clock.
  private static func commonClock(of graphs: [GraphInstances]) throws -> Clock.Kind {
    let plans = graphs.map(\.first)
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
    if let metrics, !isQuiet || metrics.hasChosenPort || talk != nil { out.write(metrics.place) }
    // Dispatch takes its descriptors with the first task: now, while there are some.
    readers.start {}
    _ = readers.wait()
    // Before nodes are made: that may take long, and may already have something to clean up.
    Signals.listen()
    try prepare()
    var progress = Progress(
      runs, title: title, board: board, output: out,
      redraws: !writesToScreen && control?.answersOnError != true, isQuiet: isQuiet)
    offerStatistics()
    trace?.begin(runs)
    if let talk { talk.begin(runs[0], readers, takesKeys: takesKeys) }
    startedAt = millrace_monotonic_ns()
    turnTrace?.begin()
    for run in runs {
      if let duration { run.drain(at: .nanoseconds(duration)) }
      run.start()
    }
    control?.start()
    watch(&progress)
    // Whoever asks twice does not wait for programs that ignore the end of their node.
    if isStopping { Programs.killAll() }
    endedAt = millrace_monotonic_ns()
    statistics = nil
    metrics?.stop()
    for remark in control?.finish() ?? [] { out.write("control: \(remark)\n") }
    // Events and sound of the last moments are still on their way when a run has stopped.
    _ = readers.wait()
    talk?.finish(board)
    progress.finish()
    let status = tellEnd()
    if status != .done { throw status }
  }

  /// The formats of every link, before anything starts.
  private func tellLinks(_ graph: GraphInstances) {
    guard !graph.first.links.isEmpty else { return }
    let count = graph.count > 1 ? " (\(graph.count) instances)" : ""
    out.write(
      out.style.paint(graph.title, .heading) + "\(count)\n" + PlanExplanation(graph.first).linkText(out.style)
    )
  }

  /// How many runs there will be.
  private var total: Int { graphs.reduce(0) { $0 + $1.count } }

  /// Makes everything that is to run. What stands in the way lets go of what is made already.
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

  /// Refuses in words what would not fit into memory, before the first of many instances is made.
  private func checkMemory() throws(ExitStatus) {
    do throws(StartProblem) {
      try engine.checkMemory(of: graphs.map { ($0.first, $0.count) }, observesEvents: observesEvents)
    } catch {
      GraphOptions.tell(Problems([Problem(error.text, hint: error.cure)]))
      throw .refused
    }
  }

  private mutating func prepareInstances(of index: Int) throws {
    var room = InstanceRoom(limits, count: graphs[index].count)
    for number in 1...graphs[index].count {
      try limits.checkMemory(forInstance: runs.count + 1, of: total)
      let plan = try graphs[index].plan(number)
      try sources.add(plan)
      let run = try prepare(plan)
      if wantsPage && number == 1 { waves.append(WaveRecorder(run, readers)) }
      metrics?.figures.add(run, as: graphs[index].title)
      runs.append(run)
      try room.check(run, number: number)
      if Signals.isAskedToEnd { throw ExitStatus.interrupted }
    }
  }

  /// True when there are few enough runs to tell what happens in them.
  private var isWatched: Bool { total <= Self.watchedRuns }
  private var observesEvents: Bool { isWatched || golden != nil }

  private func prepare(_ plan: GraphPlan) throws -> GraphRun {
    golden?.expect(plan)
    do throws(StartProblem) {
      let run = try engine.prepare(plan, observesEvents: observesEvents)
      golden?.watch(run)
      // What its own events say of failed nodes decides the exit status, however many runs there are.
      if isWatched || plan.nodes.contains(where: { $0.onError != .stop }) {
        board.watch(run, label: label(of: plan))
      }
      return run
    } catch {
      GraphOptions.tell(Problems([Self.problem(error, plan)]))
      throw ExitStatus.refused
    }
  }

  /// Tells the control which runs there are, and has it take the commands that must be known before the start.
  private func prepareControl() throws {
    let numbered = graphs.flatMap { graph in (1...graph.count).map { (graph.title, $0) } }
    let targets = zip(numbered, runs).map { ControlErrand.Target(graph: $0.0, instance: $0.1, run: $1) }
    try control?.prepare(targets, clock: engine.clock)
  }

  /// What stands in front of the names of a run's nodes, so that those of several runs can be told apart.
  func label(of plan: GraphPlan) -> String {
    graphs.count == 1 && graphs[0].count == 1 ? "" : "\(plan.name): "
  }

  /// A node's refusal to start, at its place in the graph file: the parameter it objects to, or its name.
  static func problem(_ start: StartProblem, _ plan: GraphPlan) -> Problem {
    guard let node = plan.nodes.first(where: { $0.name == start.node }) else {
      return Problem(start.text, hint: start.cure)
    }
    return node.problem(start.nodeProblem)
  }

  // MARK: Watching

  private mutating func watch(_ progress: inout Progress) {
    var first = 0
    while first < runs.count {
      heedSignals()
      answerStatistics()
      if runs[first].waitUntilStopped(timeout: .nanoseconds(waiting)) != nil {
        first += 1
        continue
      }
      trace?.take()
      if let talk {
        talk.update(board, now: millrace_monotonic_ns())
      } else {
        progress.update(now: millrace_monotonic_ns())
      }
    }
    progress.clear()
  }

  private var waiting: Nanoseconds { trace != nil ? Self.traceTick : talk != nil ? Self.talkTick : Self.tick }

  private mutating func heedSignals() {
    if Signals.isAskedToStop && !isStopping {
      isStopping = true
      for run in runs { run.stop() }
    } else if (Signals.isAskedToEnd || talk?.isLeaving == true) && !isDraining {
      drain()
    }
  }

  private mutating func drain() {
    isDraining = true
    metrics?.noteDraining()
    talk?.leave()
    for run in runs { run.drain() }
  }

  /// True when a node writes to the screen itself: meters would be drawn over its lines.
  private var writesToScreen: Bool {
    Output.standard.isTerminal
      && graphs.map(\.first).contains { plan in
        plan.nodes.contains {
          $0.isSink && ($0.parameters["path"] == "-" || $0.contract.type == "text.print")
        }
      }
  }

  // MARK: Statistics for others

  /// Opens the socket that `top` asks. A run goes on without it; who gave it a name is told.
  private mutating func offerStatistics() {
    do throws(RunFolder.Refusal) {
      statistics = try StatisticsSocket(RunFolder())
    } catch {
      guard name != nil else { return }
      out.write("\"top\" will not find this run: \(error.text)\n")
    }
  }

  private func answerStatistics() {
    statistics?.answer {
      RunStatistics.json(
        name ?? title, merged(runs.map { $0.report() }, wall: millrace_monotonic_ns() - startedAt),
        workers: engine.workerLoads)
    }
  }
}

/// Carries a file through a closure that cannot hand out what may not be copied.
private final class TextFileBox {
  private var file: TextFile?
  init(_ file: consuming TextFile) { self.file = consume file }
  func take() -> TextFile { file.take()! }
}
