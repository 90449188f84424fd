internal import ArgumentParser
internal import MillraceCore
internal import MillraceGraph

/// `run`: runs graphs until they end.
struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Runs graphs until they end.",
    discussion: """
      The first termination signal (SIGINT from Ctrl-C, SIGTERM, or SIGHUP when the terminal closes) drains the graphs: sources end, \
      and queued packets flow out. The second stops them without draining. The third ends the process immediately. The runner writes \
      its own messages to standard error.
      """)

  @Argument(help: "The graph files.", completion: .file(extensions: ["json"]))
  var files: [String]

  @OptionGroup var options: GraphOptions

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Instances of each graph. In --set values, {instance} is the number of the instance.",
      valueName: "count"))
  var instances = 1

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Drain after this graph time, such as 10s, 500ms or 2min; exact on a virtual clock.",
      valueName: "time"))
  var duration: TimeSpan?

  @Option(
    name: .long,
    help: ArgumentHelp("Voice workers. Default: one per CPU, at most four.", valueName: "count"))
  var workers: Int?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Memory limit of all graphs together, such as 512MB or 2GiB. Default: the machine's memory.",
      valueName: "size"))
  var memory: MemorySize?

  @Option(
    name: .long,
    help: ArgumentHelp("Write a report: an .html page or a .json file.", valueName: "file"),
    completion: .file(extensions: ["html", "json"]))
  var report: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Write a trace of all node calls, for ui.perfetto.dev; - for standard output.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var trace: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The name of this run in \"top\". Default: the names of the graphs.", valueName: "name"))
  var name: String?

  @OptionGroup(title: "Observing") var observing: ObservingOptions

  @OptionGroup(title: "Control") var control: ControlOptions

  @OptionGroup(title: "Golden runs") var golden: GoldenOptions

  @Flag(name: .shortAndLong, help: "Print only errors and node failures.")
  var quiet = false

  /// Each instance needs some hundred kilobytes.
  private static let mostInstances = 100_000
  private static let mostWorkers = 64

  func validate() throws {
    guard (1...Self.mostInstances).contains(instances) else {
      throw ValidationError("--instances must be 1 to \(Self.mostInstances)")
    }
    if let workers, !(1...Self.mostWorkers).contains(workers) {
      throw ValidationError("--workers must be 1 to \(Self.mostWorkers)")
    }
    if name == "" { throw ValidationError("--name must not be empty") }
    if golden.isGolden && options.clock == .realtime {
      throw ValidationError("golden runs need the virtual clock; remove --clock realtime")
    }
    try RunReportFile.checkName(report)
  }

  func run() throws {
    var options = options
    if golden.isGolden { options.clock = .virtual }
    let limits = ProcessLimits()
    let graphs = try files.map { file in
      // Loaded once when all instances share it: faster, and a pipe can be read only once.
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
