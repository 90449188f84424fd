internal import ArgumentParser
internal import Glibc
internal import Millrace
internal import MillraceBailianDouble
public import MillraceConformance
public import MillraceCore
public import MillraceDoubles
internal import MillraceIVHDouble
internal import MillraceNet
internal import MillraceTuyaDouble
internal import MillraceWebSocketDouble
internal import Synchronization

/// The runner as a library: `millrace` and every custom runner is a call of `main`.
///
/// ```swift
/// import Millrace
/// import MillraceRunner
///
/// var catalogue = Catalogue.standard
/// catalogue.add(Whisper.self)
/// MillraceCommand.main(catalogue: catalogue, name: "mybot")
/// ```
///
/// All subcommands then know the added nodes: `mybot nodes bot.whisper`, `mybot schema`, `mybot run graph.json`.
public enum MillraceCommand {
  /// The version that `--version` prints.
  public static let version = "0.1.0"

  /// Parses the arguments, runs the command and exits with a status of `ExitStatus`.
  /// - Parameters:
  ///   - catalogue: the node types that graphs can use, besides `service.double`, which is added unless it has one of that name.
  ///   - name: name of the program in its help and in completion scripts.
  ///   - services: your own services that can be simulated, for `double`, `talk --double`, `test-node` and `bench dialogues`, in
  ///     addition to the standard ones.
  ///   - doubles: test doubles for service nodes without such a service, used by `test-node` only.
  ///   - arguments: the arguments without the program's name; nil for those of the process.
  public static func main(
    catalogue: Catalogue, name: String = "millrace", services: [any ServiceProgram.Type] = [],
    doubles: [any ServiceDouble.Type] = [], arguments: [String]? = nil
  ) -> Never {
    FFmpegLog.capture()
    let status = run(
      catalogue: catalogue, name: name, services: services, doubles: doubles, arguments: arguments)
    Programs.killAll()
    exit(status.rawValue)
  }

  /// Like `main`, for a program that only runs benchmarks, such as the one in the folder `benchmarks`: its arguments are those of the
  /// subcommand `bench`. The dialogue suite also starts this program as the service it measures against, with the subcommand `double` as
  /// first argument.
  /// - Parameters:
  ///   - catalogue: the node types that graphs can use.
  ///   - name: name of the program in its help.
  ///   - arguments: the arguments without the program's name; nil for those of the process.
  public static func benchMain(
    catalogue: Catalogue, name: String = "millrace-bench", arguments: [String]? = nil
  ) -> Never {
    let given = arguments ?? Array(CommandLine.arguments.dropFirst())
    main(catalogue: catalogue, name: name, arguments: benchArguments(given))
  }

  static func benchArguments(_ given: [String]) -> [String] {
    given.first == DoubleCommand.configuration.commandName ? given : ["bench"] + given
  }

  /// Child processes of nodes have a second between SIGTERM and SIGKILL; the extra tenth is for the threads that send the signals.
  private static let programsEnd: Nanoseconds = .milliseconds(1_100)

  /// Milliseconds for the requests that close sessions of services. A third termination signal does not wait.
  private static let requestsEnd = 2_000

  /// Like `main`, but returns the status instead of exiting. One call at a time. Programs started by nodes have ended when it returns,
  /// unless they need more than 1.1 s.
  public static func run(
    catalogue: Catalogue, name: String = "millrace", services: [any ServiceProgram.Type] = [],
    doubles: [any ServiceDouble.Type] = [], arguments: [String]? = nil
  ) -> ExitStatus {
    Output.reserveStandardDescriptors()
    RunnerContext.current.withLock { context in
      context = RunnerContext()
      context.catalogue = catalogue.withServiceDouble
      context.name = name
      // A program of its own comes first: where one service is wanted, it is that.
      context.services = services + context.services
      context.otherDoubles = doubles
    }
    Signals.ignoreWriteSignals()
    Output.clearFailure()
    defer {
      endPrograms()
      LastRequests.wait(atMost: requestsEnd)
    }
    let status = perform(arguments)
    guard let failure = Output.failure else { return status }
    Output.error.write("error: cannot write standard output: \(failure); free some space or redirect it\n")
    return status == .done ? .usage : status
  }

  /// Waits for the programs started by nodes, and kills them when another termination signal arrives.
  private static func endPrograms() {
    let interval: Nanoseconds = .milliseconds(20)
    var remaining = programsEnd
    while remaining > 0, !Programs.wait(atMost: .nanoseconds(min(interval, remaining))) {
      if Signals.isStopRequested { Programs.killAll() }
      remaining -= interval
    }
  }

  private static func perform(_ arguments: [String]?) -> ExitStatus {
    do {
      var command = try RootCommand.parseAsRoot(arguments)
      try command.run()
      return .done
    } catch let status as ExitStatus {
      return status
    } catch {
      return handle(error)
    }
  }

  /// Handles what ArgumentParser throws: a usage error, or the request to print help, the version or a completion script.
  private static func handle(_ error: any Error) -> ExitStatus {
    let message = RootCommand.fullMessage(for: error)
    if RootCommand.exitCode(for: error).isSuccess {
      Output.standard.write(message.isEmpty ? "" : message + "\n")
      return .done
    }
    Output.error.write(message + "\n")
    return .usage
  }
}

/// The exit status of a runner's process.
public enum ExitStatus: Int32, Error, Sendable, Hashable, CaseIterable {
  /// Success. The graph ended on its own or at its duration, or was drained on request.
  case done = 0
  /// The graph was rejected: by the checks, or because a node could not be created.
  case refused = 1
  /// A usage error, or a file named on the command line cannot be read or written.
  case usage = 2
  /// A node failed while the graph was running and ended the run or was isolated; or a service node failed a conformance case.
  case failed = 3
  /// A service refused the connection and would refuse it again: credentials, quota, certificate. Nothing else failed.
  case serviceRefused = 4
  /// The run differs from its golden run.
  case differed = 5
  /// Stopped by a second termination signal, or terminated before anything started (128 plus the number of SIGINT).
  case interrupted = 130
}

/// What the subcommands share: the catalogue, the program's name, and the services that can be simulated.
struct RunnerContext: Sendable {
  var catalogue = Catalogue()
  var name = "millrace"
  var services = Self.standardServices
  /// For nodes of services that are not in `services`.
  var otherDoubles: [any ServiceDouble.Type] = []

  /// The services that this build includes.
  static var standardServices: [any ServiceProgram.Type] {
    let services: [any ServiceProgram.Type] = [
      BailianProgram.self, IVHProgram.self, TuyaProgram.self, WebSocketProgram.self,
    ]
    #if RTC
      return services + [RoomProgram.self]
    #else
      return services
    #endif
  }

  /// Global because ArgumentParser creates the commands and passes nothing to them.
  static let current = Mutex(RunnerContext())

  static var catalogue: Catalogue { current.withLock { $0.catalogue } }
  static var services: [any ServiceProgram.Type] { current.withLock { $0.services } }
  /// The doubles of the conformance suite.
  static var doubles: [any ServiceDouble.Type] {
    current.withLock { context in context.services.flatMap { $0.conformance } + context.otherDoubles }
  }
}

/// The root command. It only has subcommands.
struct RootCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: RunnerContext.current.withLock { $0.name },
      abstract: "Runs media graphs: typed nodes connected by links, declared in JSON.",
      discussion: """
        Exit status: 0 success, 1 invalid graph, 2 usage error, 3 a node failed while running, 4 a service refused the \
        connection, 5 the run differs from its golden run, 130 interrupted.
        """,
      version: MillraceCommand.version,
      subcommands: subcommands)
  }

  /// The subcommands that this build includes.
  private static var subcommands: [any ParsableCommand.Type] {
    var commands: [any ParsableCommand.Type] = [
      RunCommand.self, TalkCommand.self, CheckCommand.self, ExplainCommand.self, DrawCommand.self,
      NodesCommand.self, SchemaCommand.self,
    ]
    #if Devices
      commands.append(DevicesCommand.self)
    #endif
    commands.append(TopCommand.self)
    #if Video
      commands.append(BenchCommand.self)
    #endif
    commands += [DoubleCommand.self, TestNodeCommand.self]
    #if RTC
      commands.append(TokenCommand.self)
    #endif
    return commands
  }
}
