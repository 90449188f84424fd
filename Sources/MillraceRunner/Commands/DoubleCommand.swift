internal import ArgumentParser
internal import Glibc
internal import MillraceBailianDouble
internal import MillraceNet
internal import Synchronization

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

  @Flag(name: .shortAndLong, help: "Print violations only.")
  var quiet = false

  func run() throws {
    let scenario = try readScenario()
    let isQuiet = quiet
    let answer = Mutex<Result<BailianDouble, NetProblem>?>(nil)
    Signals.listen()
    Task.detached { [port] in
      let made: Result<BailianDouble, NetProblem>
      do throws(NetProblem) {
        made = .success(
          try await BailianDouble.listen(scenario, port: Int(port)) { line in
            if !isQuiet || line.hasPrefix("!") { Output.standard.write(line + "\n") }
          })
      } catch {
        made = .failure(error)
      }
      answer.withLock { $0 = made }
    }
    while answer.withLock({ $0 }) == nil { usleep(1_000) }
    switch answer.withLock({ $0 }) {
    case .success(let double)?: try watch(double)
    case .failure(let problem)?:
      Output.error.write("error: \(problem)\n")
      throw ExitStatus.usage
    case nil: break
    }
  }

  private func readScenario() throws -> BailianScenario {
    guard let scenario else { return BailianScenario() }
    guard let file = unsafe fopen(scenario, "r") else {
      Output.error.write("error: cannot read \"\(scenario)\": \(unsafe String(cString: strerror(errno)))\n")
      throw ExitStatus.usage
    }
    defer { unsafe fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe fread(&buffer, 1, buffer.count, file)
      guard count > 0 else { break }
      bytes += buffer.prefix(count)
    }
    do throws(ScenarioProblem) {
      return try BailianScenario(parsing: String(decoding: bytes, as: UTF8.self))
    } catch {
      Output.error.write("\(scenario): error: \(error)\n")
      throw ExitStatus.usage
    }
  }

  /// Until somebody interrupts.
  private func watch(_ double: BailianDouble) throws {
    Output.standard.write("ws://127.0.0.1:\(double.port)/api-ws/v1/inference\n")
    while Signals.interruptCount == 0 && !Signals.isTerminated { usleep(20_000) }
    double.stop()
    let seen = double.seen
    Output.standard.write(
      "\(seen.visits) visits, \(seen.turns) turns, \(seen.framesHeard) frames of sound, \(seen.violations.count) violations\n"
    )
    if !seen.violations.isEmpty { throw ExitStatus.failed }
  }
}
