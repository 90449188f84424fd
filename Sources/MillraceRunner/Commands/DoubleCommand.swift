internal import ArgumentParser
internal import Glibc
internal import MillraceBailianDouble
internal import MillraceGraph

/// `double`: runs a service's test double, to build and test bots without an account.
struct DoubleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "double", abstract: "Simulates a voice service on this machine, until interrupted.",
    discussion: """
      Replies are spoken by espeak-ng, in the format the client asks for. Messages in both directions are printed, and every \
      violation of the protocol by the client. With any violation the exit status is 3.
      """)

  enum Service: String, ExpressibleByArgument, CaseIterable {
    case bailian
  }

  @Argument(help: "The service to simulate.")
  var service: Service

  @Option(name: .long, help: "The port to listen on; 0 for any free port.")
  var port: UInt16 = 8770

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The scenario to play, as JSON. Default: one short reply to everything.", valueName: "file"))
  var scenario: String?

  @Option(
    name: .long, help: ArgumentHelp("Write a report to a file at the end, as JSON.", valueName: "file"),
    completion: .file())
  var report: String?

  @Flag(name: .shortAndLong, help: "Print only violations.")
  var quiet = false

  func run() throws {
    var scenario = try DoubleScenario.read(scenario, otherwise: BailianScenario())
    // The double may run for days: keep no history.
    scenario.keeps = false
    let isQuiet = quiet
    Signals.listen()
    let double = try BailianDouble.start(scenario, port: Int(port)) { line in
      if !isQuiet || line.hasPrefix("!") { Output.standard.write(Problem.printable(line) + "\n") }
    }
    try watch(double)
  }

  /// Waits until the process is interrupted, then prints and writes the results.
  private func watch(_ double: BailianDouble) throws {
    // Opened now, so that a wrong path is reported now and not days later.
    var file: TextFile? = nil
    if let report { file = try TextFile(creating: report) }
    Output.standard.write("\(double.address)\n")
    while !Signals.isDrainRequested { usleep(20_000) }
    double.stop()
    let seen = double.seen
    Output.standard.write(
      "\(seen.connections) connections, \(seen.turns) turns, \(seen.framesHeard) audio messages, \(seen.violationCount) violations\n"
    )
    file?.write(Self.json(seen))
    try file?.finish()
    if seen.violationCount > 0 { throw ExitStatus.failed }
  }

  /// The report that `--report` writes. `violationCount` includes violations that are not listed.
  static func json(_ seen: BailianDouble.Report) -> String {
    var writer = JSONWriter()
    writer.object { json in
      json.member("connections", seen.connections)
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
