internal import ArgumentParser
internal import Glibc
internal import MillraceBailianDouble
internal import MillraceGraph

/// `double`: a service on this machine, to build and test bots without an account.
struct DoubleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "double", abstract: "Plays a voice service on this machine, until it is interrupted.",
    discussion: """
      Replies are spoken by espeak-ng, in the form the client asks for. What the client says and is told is printed, and what \
      it does wrong: with any violation the exit status is 3.
      """)

  enum Service: String, ExpressibleByArgument, CaseIterable {
    case bailian
  }

  @Argument(help: "The service.")
  var service: Service

  @Option(name: .long, help: "The port of this machine to listen at; 0: any.")
  var port: UInt16 = 8770

  @Option(
    name: .long,
    help: ArgumentHelp("A scenario, JSON; otherwise one short answer to everything.", valueName: "file"))
  var scenario: String?

  @Option(
    name: .long, help: ArgumentHelp("Write what was seen to a file at the end, as JSON.", valueName: "file"),
    completion: .file())
  var report: String?

  @Flag(name: .shortAndLong, help: "Print violations only.")
  var quiet = false

  func run() throws {
    var scenario = try DoubleScenario.read(scenario, otherwise: BailianScenario())
    // It may run for days.
    scenario.keeps = false
    let isQuiet = quiet
    Signals.listen()
    let double = try BailianDouble.start(scenario, port: Int(port)) { line in
      if !isQuiet || line.hasPrefix("!") { Output.standard.write(Problem.printable(line) + "\n") }
    }
    try watch(double)
  }

  /// Until somebody interrupts.
  private func watch(_ double: BailianDouble) throws {
    // Found out before it runs for days.
    var file: TextFile? = nil
    if let report { file = try TextFile(creating: report) }
    Output.standard.write("\(double.address)\n")
    while !Signals.isAskedToEnd { usleep(20_000) }
    double.stop()
    let seen = double.seen
    Output.standard.write(
      "\(seen.connections) visits, \(seen.turns) turns, \(seen.framesHeard) frames of sound, \(seen.violationCount) violations\n"
    )
    file?.write(Self.json(seen))
    try file?.finish()
    if seen.violationCount > 0 { throw ExitStatus.failed }
  }

  /// What `--report` writes. The violations are those that were kept, their number that of all.
  static func json(_ seen: BailianDouble.Report) -> String {
    var writer = JSONWriter()
    writer.object { json in
      json.member("visits", seen.connections)
      json.member("turns", seen.turns)
      json.member("frames", seen.framesHeard)
      json.member("framesTimed", seen.framesTimed)
      json.member("framesLate", seen.framesLate)
      json.member("latestMs", seen.latest)
      json.member("pictures", seen.pictures)
      json.member("largestPicture", seen.largestPicture)
      json.member("violationCount", seen.violationCount)
      json.array("violations") { list in
        for violation in seen.violations { list.value(violation.description) }
      }
    }
    return writer.text + "\n"
  }
}
