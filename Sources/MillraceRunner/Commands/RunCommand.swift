internal import ArgumentParser
internal import MillraceCore
internal import MillraceGraph

/// `run`: runs graphs until they end.
struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Runs graphs until they end.",
    discussion: """
      The first request to end (Ctrl-C, SIGTERM, the end of the terminal) ends the sources and lets what is inside flow out; the \
      second, of whichever kind, stops without draining; the third ends the process immediately. Everything the runner tells goes to \
      standard error.
      """)

  @Argument(help: "Graph files.", completion: .file(extensions: ["json"]))
  var files: [String]

  @OptionGroup var options: GraphOptions

  @Option(
    name: .long,
    help: ArgumentHelp(
      "How many instances of each graph; {instance} in a --set value is its number.", valueName: "count"))
  var instances = 1

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Drain after so much graph time, such as 10s, 500ms or 2min; exact on a virtual clock.",
      valueName: "time"))
  var duration: TimeSpan?

  @Option(
    name: .long,
    help: ArgumentHelp("Voice workers; without it, one for each processor, four at most.", valueName: "count")
  )
  var workers: Int?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The memory that all graphs together may take, such as 512MB or 2GiB; without it, what the machine has.",
      valueName: "size"))
  var memory: MemorySize?

  @Option(
    name: .long,
    help: ArgumentHelp("Write what happened: a .html page to look at, or a .json file.", valueName: "file"),
    completion: .file(extensions: ["html", "json"]))
  var report: String?

  @Option(
    name: .long,
    help: ArgumentHelp("Write every call of every node as a trace for ui.perfetto.dev.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var trace: String?

  @Option(
    name: .long,
    help: ArgumentHelp("What \"top\" calls this run; without it, as the graphs.", valueName: "name"))
  var name: String?

  @OptionGroup(title: "Observing") var observing: ObservingOptions

  @OptionGroup(title: "Control") var control: ControlOptions

  @OptionGroup(title: "Golden runs") var golden: GoldenOptions

  @Flag(name: .shortAndLong, help: "Tell nothing but errors and failed nodes.")
  var quiet = false

  /// Most instances: each takes some hundred kilobytes, and the machine ends somewhere.
  private static let mostInstances = 100_000
  private static let mostWorkers = 64

  func validate() throws {
    guard (1...Self.mostInstances).contains(instances) else {
      throw ValidationError("--instances takes 1 to \(Self.mostInstances).")
    }
    if let workers, !(1...Self.mostWorkers).contains(workers) {
      throw ValidationError("--workers takes 1 to \(Self.mostWorkers).")
    }
    if name == "" { throw ValidationError("--name takes a name; without it \"top\" shows the graphs'.") }
    if golden.isGolden && options.clock == .realtime {
      throw ValidationError("golden runs use the virtual clock: leave --clock realtime out.")
    }
    try RunReportFile.checkName(report)
  }

  func run() throws {
    var options = options
    if golden.isGolden { options.clock = .virtual }
    let limits = ProcessLimits()
    let graphs = try files.map { file in
      // A pipe can be read once, and what all instances share need not be read again.
      let shared = options.differsByInstance ? nil : try options.load(file, instance: 1)
      return try GraphInstances(count: instances) { [options] number in
        try shared ?? options.load(file, instance: number)
      }
    }
    var session = try RunSession(
      graphs, duration: duration?.nanoseconds, workers: workers, memory: memory?.bytes, report: report,
      trace: trace, name: name,
      control: control, golden: golden, observing: observing, isQuiet: quiet, limits: limits)
    try session.perform()
  }
}
