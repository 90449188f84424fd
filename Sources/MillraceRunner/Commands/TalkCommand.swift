internal import ArgumentParser
internal import Glibc
internal import MillraceCore
internal import MillraceDoubles
internal import MillraceGraph

/// `talk`: runs a dialogue with a voice service from the terminal.
struct TalkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "talk",
    abstract: "Runs a dialogue with a voice service, and shows whose turn it is and what was said.",
    discussion: """
      Keys: space talks (push-to-talk: press to start and again to stop, or hold it), Enter talks in tap-to-talk, i interrupts, \
      q quits; any other text is sent as a question. /help lists the commands. Without a terminal, lines from standard input or \
      --script do the same. --double simulates the service, so no account is needed.
      """)

  @Argument(
    help: "A graph file, or the name of a graph that comes with the program.",
    completion: .file(extensions: ["json"]))
  var graph = "bailian-voice"

  @OptionGroup var options: GraphOptions

  @Flag(name: .long, help: "Simulate the service in this process.")
  var double = false

  @Option(
    name: .long, help: ArgumentHelp("The scenario that --double plays, as JSON.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var scenario: String?

  @Option(
    name: .long,
    help: ArgumentHelp("Read lines from a file or named pipe instead of keys.", valueName: "file"),
    completion: .file())
  var script: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Write a transcript of the dialogue to a file; - for standard output.", valueName: "file"),
    completion: .file())
  var transcript: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Begin to quit after this time, such as 10s or 2min; a reply in progress is finished.",
      valueName: "time"))
  var duration: TimeSpan?

  @Option(
    name: .long,
    help: ArgumentHelp("Write a report: an .html page or a .json file.", valueName: "file"),
    completion: .file(extensions: ["html", "json"]))
  var report: String?

  @OptionGroup(title: "Observing") var observing: ObservingOptions

  @Flag(name: .long, help: "Use lines instead of keys, also on a terminal.")
  var plain = false

  func validate() throws {
    if scenario != nil && !double {
      throw ValidationError("--scenario needs --double")
    }
    if options.clock == .virtual {
      throw ValidationError("a dialogue cannot use the virtual clock; remove --clock virtual")
    }
    try RunReportFile.checkName(report)
  }

  func run() throws {
    let path = try GraphFinder.find(graph)
    let service = try double ? startDouble(for: path) : nil
    defer { service?.stop() }
    let plan = try load(path, service)
    guard let nodes = TalkNodes(plan) else {
      Output.error.write(
        "error: \(Problem.quoted(path)) has no service node; name a graph with a node such as \(Self.serviceTypes)\n"
      )
      throw ExitStatus.usage
    }
    let transcriptFile = try TranscriptFile(transcript)
    let talk = Talk(plan, nodes: nodes, script: try TalkScript(script), transcript: transcriptFile.take())
    var session = try RunSession(
      [GraphInstances { _ in plan }], duration: duration?.nanoseconds, workers: nil,
      report: report, trace: nil, name: nil, control: nil, golden: nil, observing: observing, isQuiet: true,
      limits: ProcessLimits(),
      talk: talk,
      takesKeys: script == nil && !plain)
    try session.perform()
    try talk.finishTranscript()
    if let service { try Self.reportViolations(of: service) }
  }

  /// Loads the graph. Its events go to /dev/null: by default, graphs write them to standard output, which the dialogue uses.
  private func load(_ path: String, _ service: (any RunningDouble)?) throws -> GraphPlan {
    var options = options
    guard FileKind(path: path) != .pipe else {
      Output.error.write(
        "error: \(Problem.quoted(path)) is a pipe and can be read only once; name a regular file\n")
      throw ExitStatus.usage
    }
    guard let parameters = GraphFinder.parameters(of: path) else { return try options.load(path) }
    func set(_ name: String, _ value: String) {
      guard parameters.contains(name), !options.set.contains(where: { $0.name == name }) else { return }
      options.set.append(Assignment(argument: "\(name)=\(value)"))
    }
    set("log", "/dev/null")
    for setting in service?.settings ?? [] {
      try check(setting, parameters, path)
      set(setting.name, setting.value)
    }
    return try options.load(path)
  }

  /// Checks that a parameter without which the double cannot be reached is there, and not used for another.
  private func check(_ setting: DoubleSetting, _ parameters: Set<String>, _ path: String) throws {
    guard let requirement = setting.requirement else { return }
    let name = setting.name
    let problem: String
    if !parameters.contains(name) {
      problem = "\(Problem.quoted(path)) has no parameter \"\(name)\" for \(requirement); add one"
    } else if options.set.contains(where: { $0.name == name }) {
      problem = "with --double, \"\(name)\" is \(requirement); remove --double, or --set \(name)"
    } else {
      return
    }
    Output.error.write("error: \(problem)\n")
    throw ExitStatus.usage
  }

  /// True for a node type that can hold a dialogue: other nodes may have a double, too, and are beside it in the graph.
  private static func holdsDialogue(_ type: String) -> Bool {
    RunnerContext.catalogue[type].map { TalkNodes.isService($0.contract) } ?? false
  }

  /// The node types that can hold a dialogue and have a double, for messages.
  private static var serviceTypes: String {
    RunnerContext.services.flatMap { $0.nodeTypes }.filter(holdsDialogue).joined(separator: ", ")
  }

  /// Starts the double of the service that the graph uses; nil when the graph cannot be read, which its loading reports.
  private func startDouble(for path: String) throws -> (any RunningDouble)? {
    var settings = DoubleOptions()
    settings.scenario = try DoubleStart.scenario(scenario, otherwise: .conversation)
    guard FileKind(path: path) != .pipe, let found = GraphFinder.nodeTypes(of: path) else { return nil }
    let services = RunnerContext.services
    let dialogues = found.types.filter(Self.holdsDialogue)
    guard let program = services.first(where: { !dialogues.isDisjoint(with: $0.nodeTypes) }) else {
      let cure =
        found.openPaths.first.map {
          "graphs whose path depends on a parameter are not searched, such as \(Problem.quoted($0)); "
            + "write the path itself, or run \"millrace double\" and set its address"
        } ?? "name a graph with a node such as \(Self.serviceTypes)"
      Output.error.write("error: \(Problem.quoted(path)) has no service node with a double; \(cure)\n")
      throw ExitStatus.usage
    }
    return try DoubleStart.start(program, settings)
  }

  /// Most violations printed.
  private static let mostPrinted = 20

  private static func reportViolations(of service: any RunningDouble) throws {
    let seen = service.seen
    guard seen.violationCount > 0 else { return }
    let printed = seen.violations.prefix(mostPrinted)
    for violation in printed { Output.error.write("double: \(Problem.printable("\(violation)"))\n") }
    let rest = seen.violationCount - printed.count
    if rest > 0 { Output.error.write("double: and \(rest) more\n") }
    throw ExitStatus.failed
  }
}

/// Holds a noncopyable file across calls that may throw.
private final class TranscriptFile {
  private var file: TextFile?
  init(_ path: String?) throws { file = try path.map { try TranscriptFile.open($0) }?.take() }
  private init(file: consuming TextFile) { self.file = consume file }
  private static func open(_ path: String) throws -> TranscriptFile {
    TranscriptFile(file: try TextFile(creating: path))
  }
  func take() -> TextFile? { file.take() }
}
