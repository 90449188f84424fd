internal import ArgumentParser
internal import Glibc
internal import MillraceBailianDouble
internal import MillraceCore
internal import MillraceGraph

/// `talk`: a dialogue with a voice service, led from the terminal.
struct TalkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "talk", abstract: "Talks to a voice service, and shows whose turn it is and what was said.",
    discussion: """
      Without a graph it is bailian-voice. Keys: space talks (push-to-talk: press to begin, press again to end, or hold it), \
      enter taps (tap-to-talk), i interrupts, q leaves; anything else typed is asked. /help tells the rest. Without a \
      terminal, lines of standard input or of --script do the same. --double plays the service, so that no account is needed.
      """)

  @Argument(
    help: "A graph file, or the name of one that comes with the program.",
    completion: .file(extensions: ["json"]))
  var graph = "bailian-voice"

  @OptionGroup var options: GraphOptions

  @Flag(name: .long, help: "Play the service in this process.")
  var double = false

  @Option(
    name: .long, help: ArgumentHelp("What the double says, JSON.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var scenario: String?

  @Option(
    name: .long,
    help: ArgumentHelp("Take lines from a file or a named pipe in place of keys.", valueName: "file"),
    completion: .file())
  var script: String?

  @Option(
    name: .long, help: ArgumentHelp("Write what both sides say into a file.", valueName: "file"),
    completion: .file())
  var transcript: String?

  @Option(
    name: .long, help: ArgumentHelp("Leave after so much time, such as 10s or 2min.", valueName: "time"))
  var duration: TimeSpan?

  @Option(
    name: .long,
    help: ArgumentHelp("Write what happened: a .html page to look at, or a .json file.", valueName: "file"),
    completion: .file(extensions: ["html", "json"]))
  var report: String?

  @OptionGroup(title: "Observing") var observing: ObservingOptions

  @Flag(name: .long, help: "Lines only, no keys, also on a terminal.")
  var plain = false

  func validate() throws {
    if scenario != nil && !double {
      throw ValidationError("--scenario is what --double plays: give that, too.")
    }
    if options.clock == .virtual { throw ValidationError("a dialogue has no virtual clock.") }
    try RunReportFile.checkName(report)
  }

  func run() throws {
    let path = try GraphPlace.find(graph)
    let service = try double ? startDouble() : nil
    defer { service?.stop() }
    let plan = try load(path, service)
    guard let parts = TalkParts(plan) else {
      Output.error.write(
        "error: \(Problem.quoted(path)) has no service to talk to; name a graph with bailian.dialog in it\n")
      throw ExitStatus.usage
    }
    let transcriptFile = try TalkTranscript(transcript)
    let talk = Talk(plan, parts: parts, script: try TalkScript(script), transcript: transcriptFile.take())
    var session = try RunSession(
      [GraphInstances { _ in plan }], duration: duration?.nanoseconds, workers: nil,
      report: report, trace: nil, name: nil, control: nil, golden: nil, observing: observing, isQuiet: true,
      limits: ProcessLimits(),
      talk: talk,
      takesKeys: script == nil && !plain)
    try session.perform()
    try talk.finishTranscript()
    if let service { try Self.tell(service) }
  }

  /// Graphs write their events to standard output, which is no place for them here.
  private func load(_ path: String, _ service: BailianDouble?) throws -> GraphPlan {
    var options = options
    guard FileKind(path: path) != .pipe else {
      Output.error.write(
        "error: \(Problem.quoted(path)) is a pipe, which can be read only once; name a file\n")
      throw ExitStatus.usage
    }
    guard let parameters = GraphPlace.parameters(of: path) else { return try options.load(path) }
    func set(_ name: String, _ value: String) {
      guard parameters.contains(name), !options.set.contains(where: { $0.name == name }) else { return }
      options.set.append(Assignment(argument: "\(name)=\(value)"))
    }
    set("log", "/dev/null")
    if let service {
      guard parameters.contains("url") else {
        Output.error.write(
          "error: \(Problem.quoted(path)) has no parameter \"url\", by which it would find the double; give it one\n"
        )
        throw ExitStatus.usage
      }
      set("url", service.address)
      // The real one is of no use to it.
      set("key", "sk-of-the-double")
    }
    return try options.load(path)
  }

  private func startDouble() throws -> BailianDouble {
    var scenario = try DoubleScenario.read(scenario, otherwise: .chat)
    // An evening may be long.
    scenario.keeps = false
    return try BailianDouble.start(scenario, port: 0) { _ in }
  }

  /// Violations that are told in words.
  private static let mostTold = 20

  private static func tell(_ service: BailianDouble) throws {
    let seen = service.seen
    guard seen.violationCount > 0 else { return }
    let told = seen.violations.prefix(mostTold)
    for violation in told { Output.error.write("double: \(Problem.printable("\(violation)"))\n") }
    let rest = seen.violationCount - told.count
    if rest > 0 { Output.error.write("double: and \(rest) more\n") }
    throw ExitStatus.failed
  }
}

/// Carries a file that may not be copied past what may throw.
private final class TalkTranscript {
  private var file: TextFile?
  init(_ path: String?) throws { file = try path.map { try TalkTranscript.open($0) }?.take() }
  private init(file: consuming TextFile) { self.file = consume file }
  private static func open(_ path: String) throws -> TalkTranscript {
    TalkTranscript(file: try TextFile(creating: path))
  }
  func take() -> TextFile? { file.take() }
}
