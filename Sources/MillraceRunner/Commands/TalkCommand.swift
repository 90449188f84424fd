internal import ArgumentParser
internal import Glibc
internal import MillraceBailianDouble
internal import MillraceCore
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
    let service = try double ? startDouble() : nil
    defer { service?.stop() }
    let plan = try load(path, service)
    guard let nodes = TalkNodes(plan) else {
      Output.error.write(
        "error: \(Problem.quoted(path)) has no service node; name a graph with a bailian.dialog node\n")
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
  private func load(_ path: String, _ service: BailianDouble?) throws -> GraphPlan {
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
    if let service {
      guard parameters.contains("url") else {
        Output.error.write(
          "error: \(Problem.quoted(path)) has no parameter \"url\" for the address of the double; add one\n")
        throw ExitStatus.usage
      }
      guard !options.set.contains(where: { $0.name == "url" }) else {
        Output.error.write(
          "error: with --double, \"url\" is the address of the double; remove --double, or --set url\n")
        throw ExitStatus.usage
      }
      set("url", service.address)
      // The double needs no real key.
      set("key", "sk-of-the-double")
    }
    return try options.load(path)
  }

  private func startDouble() throws -> BailianDouble {
    var scenario = try DoubleScenario.read(scenario, otherwise: .chat)
    // The dialogue may be long: keep no history.
    scenario.keeps = false
    return try BailianDouble.start(scenario, port: 0) { _ in }
  }

  /// Most violations printed.
  private static let mostPrinted = 20

  private static func reportViolations(of service: BailianDouble) throws {
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
