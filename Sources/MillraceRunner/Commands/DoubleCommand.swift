internal import ArgumentParser
internal import Glibc
internal import MillraceDoubles
internal import MillraceGraph
internal import MillraceNet

/// `double`: runs a service's test double, to build and test bots without an account.
struct DoubleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "double", abstract: "Simulates a voice service on this machine, until interrupted.",
    discussion: """
      Replies are spoken by espeak-ng, in the format the client asks for. Messages in both directions are printed, and every \
      violation of the protocol by the client. With any violation the exit status is 3.
      """)

  @Argument(
    help: "The service to simulate. Without it, the services are listed.",
    completion: .custom { _, _, _ in RunnerContext.services.map { $0.name } })
  var service: String?

  @Option(name: .long, help: "The port to listen on; 0 for any free port.")
  var port: UInt16 = 8770

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Listen over TLS with this certificate (PEM); its key is --key.", valueName: "file"),
    completion: .file())
  var certificate: String?

  @Option(
    name: .long, help: ArgumentHelp("The private key of --certificate (PEM).", valueName: "file"),
    completion: .file())
  var key: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The scenario to play, as JSON. Default: one short reply to everything; for room, a hub that forwards.",
      valueName: "file"))
  var scenario: String?

  @Option(
    name: .long, help: ArgumentHelp("Write a report to a file at the end, as JSON.", valueName: "file"),
    completion: .file())
  var report: String?

  @Flag(name: .shortAndLong, help: "Print only violations.")
  var quiet = false

  func validate() throws {
    if certificate != nil && key == nil {
      throw ValidationError("--certificate needs --key, the file of its private key")
    }
    if key != nil && certificate == nil {
      throw ValidationError("--key needs --certificate, the file of the certificate it belongs to")
    }
  }

  func run() throws {
    guard let service else {
      guard scenario == nil && report == nil && certificate == nil else {
        Output.error.write("error: name the service to simulate; \(Self.known)\n")
        throw ExitStatus.usage
      }
      return Self.list()
    }
    let program = try Self.find(service)
    var options = DoubleOptions()
    options.scenario = try DoubleStart.scenario(scenario, otherwise: .standard)
    options.port = Int(port)
    if let certificate, let key { options.identity = NetIdentity(certificate: certificate, key: key) }
    let isQuiet = quiet
    options.watch = { line in
      if !isQuiet || line.hasPrefix("!") { Output.standard.write(Problem.printable(line) + "\n") }
    }
    Signals.listen()
    try watch(try DoubleStart.start(program, options))
  }

  private static func list() {
    let services = RunnerContext.services
    let width = services.map { $0.name.count }.max() ?? 0
    for service in services {
      let name = service.name + String(repeating: " ", count: width - service.name.count)
      let types = service.nodeTypes.joined(separator: ", ")
      let nodes = types.isEmpty ? "" : " (\(types))"
      Output.standard.write("\(name)  \(service.summary)\(nodes)\n")
    }
  }

  private static var known: String {
    "the services are \(RunnerContext.services.map { $0.name }.joined(separator: ", "))"
  }

  private static func find(_ name: String) throws -> any ServiceProgram.Type {
    let services = RunnerContext.services
    if let found = services.first(where: { $0.name == name }) { return found }
    let names = services.map { $0.name }
    let hint = Spelling.hint(for: name, among: names) ?? known
    Output.error.write("error: there is no service \(Problem.quoted(name)); \(hint)\n")
    throw ExitStatus.usage
  }

  /// Waits until the process is interrupted, then prints and writes the results.
  private func watch(_ double: any RunningDouble) throws {
    // Opened now, so that a wrong path is reported now and not days later.
    var file: TextFile? = nil
    if let report { file = try TextFile(creating: report) }
    Output.standard.write("\(double.address)\n")
    // The address alone is no use to a node with another key, or that does not trust the certificate.
    for setting in double.settings where setting.value != double.address {
      Output.standard.write("\(setting.name)=\(setting.value)\n")
    }
    while !Signals.isDrainRequested { usleep(20_000) }
    double.stop()
    let seen = double.seen
    Output.standard.write(
      "\(seen.connections) connections, \(seen.turns) turns, \(seen.framesHeard) audio messages, \(seen.violationCount) violations\n"
    )
    file?.write(seen.json + "\n")
    try file?.finish()
    if seen.violationCount > 0 { throw ExitStatus.failed }
  }
}
