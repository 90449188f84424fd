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
    let doubles = try double ? startDoubles(for: path) : []
    defer { for double in doubles { double.stop() } }
    let plan = try load(path, doubles)
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
    try Self.reportViolations(of: doubles)
  }

  /// Loads the graph. Its events go to /dev/null: by default, graphs write them to standard output, which the dialogue uses.
  private func load(_ path: String, _ doubles: [NamedDouble]) throws -> GraphPlan {
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
    // A graph that speaks a text and ends: the user types more.
    if script == nil && isatty(0) == 1 { set("listens", Self.dayInMilliseconds) }
    for double in doubles {
      for setting in double.settings {
        try check(setting, parameters, path)
        set(setting.name, setting.value)
      }
    }
    return try options.load(path)
  }

  private static let dayInMilliseconds = "86400000"

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

  /// Starts the doubles of the services that the graph uses; none when the graph cannot be read, which its loading reports.
  private func startDoubles(for path: String) throws -> [NamedDouble] {
    var settings = DoubleOptions()
    settings.scenario = try DoubleStart.scenario(scenario, otherwise: .conversation)
    guard FileKind(path: path) != .pipe, let found = GraphFinder.nodeTypes(of: path) else { return [] }
    let dialogues = found.types.filter(Self.holdsDialogue)
    let programs = RunnerContext.services.filter { !dialogues.isDisjoint(with: $0.nodeTypes) }
    guard !programs.isEmpty else {
      let cure =
        found.openPaths.first.map {
          "graphs whose path depends on a parameter are not searched, such as \(Problem.quoted($0)); "
            + "write the path itself, or run \"millrace double\" and set its address"
        } ?? "name a graph with a node such as \(Self.serviceTypes)"
      Output.error.write("error: \(Problem.quoted(path)) has no service node with a double; \(cure)\n")
      throw ExitStatus.usage
    }
    if programs.count > 1 && scenario != nil {
      let names = programs.map { $0.name }.joined(separator: ", ")
      Output.error.write(
        "error: \(Problem.quoted(path)) uses several services, \(names), and a scenario belongs to one service; remove --scenario, or run "
          + "\"millrace double\" for each and set its address\n")
      throw ExitStatus.usage
    }
    var doubles: [NamedDouble] = []
    do {
      for program in programs {
        doubles.append(
          NamedDouble(
            try DoubleStart.start(program, settings), prefix: programs.count > 1 ? program.name : ""))
      }
    } catch {
      for double in doubles { double.stop() }
      throw error
    }
    return doubles
  }

  /// Most violations printed.
  private static let mostPrinted = 20

  private static func reportViolations(of doubles: [NamedDouble]) throws {
    for double in doubles {
      let seen = double.seen
      let printed = seen.violations.prefix(mostPrinted)
      let name = double.prefix.isEmpty ? "double" : "double \(double.prefix)"
      for violation in printed { Output.error.write("\(name): \(Problem.printable("\(violation)"))\n") }
      let rest = seen.violationCount - printed.count
      if rest > 0 { Output.error.write("\(name): and \(rest) more\n") }
    }
    if doubles.contains(where: { $0.seen.violationCount > 0 }) { throw ExitStatus.failed }
  }
}

/// A running double, and what precedes the names of its settings in a graph with several services: `ivh` and `url` are `ivhUrl`.
private struct NamedDouble {
  let prefix: String
  private let double: any RunningDouble

  init(_ double: any RunningDouble, prefix: String) {
    self.double = double
    self.prefix = prefix
  }

  var settings: [DoubleSetting] {
    guard !prefix.isEmpty else { return double.settings }
    return double.settings.map { setting in
      DoubleSetting(
        prefix + setting.name.prefix(1).uppercased() + setting.name.dropFirst(), setting.value,
        requirement: setting.requirement)
    }
  }

  var seen: DoubleReport { double.seen }

  func stop() { double.stop() }
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
