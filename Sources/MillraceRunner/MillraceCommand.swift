internal import ArgumentParser
internal import Glibc
internal import Millrace
internal import MillraceBailianDouble
public import MillraceConformance
public import MillraceCore
internal import MillraceWebSocketDouble
internal import Synchronization

/// The runner as a library: `millrace` itself, and every runner of a bot author's own, is a call of `main`.
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
  /// The version `--version` prints.
  public static let version = "0.1.0"

  /// Reads the arguments, does what they ask for and ends the process with the status of `ExitStatus`.
  /// - Parameters:
  ///   - catalogue: the node types graphs may use.
  ///   - name: what the program is called in its help and in completion scripts.
  ///   - doubles: what `test-node` holds service nodes of your own against, beside the standard ones.
  ///   - arguments: what stands behind the program's name; nil: those of the process.
  public static func main(
    catalogue: Catalogue, name: String = "millrace", doubles: [any ServiceDouble.Type] = [],
    arguments: [String]? = nil
  ) -> Never {
    FFmpegLog.take()
    let status = run(catalogue: catalogue, name: name, doubles: doubles, arguments: arguments)
    Programs.killAll()
    exit(status.rawValue)
  }

  /// As `main`, for a program that only runs `bench`, such as the one in the folder `benchmarks`: its arguments are suites and options of
  /// that subcommand. The suite of dialogues starts the program once more, as the service: `double` as its first argument is the
  /// subcommand of that name.
  /// - Parameters:
  ///   - catalogue: the node types graphs may use.
  ///   - name: what the program is called in its help.
  ///   - arguments: what stands behind the program's name; nil: those of the process.
  public static func benchMain(
    catalogue: Catalogue, name: String = "millrace-bench", arguments: [String]? = nil
  ) -> Never {
    let given = arguments ?? Array(CommandLine.arguments.dropFirst())
    main(catalogue: catalogue, name: name, arguments: benchArguments(given))
  }

  static func benchArguments(_ given: [String]) -> [String] {
    given.first == DoubleCommand.configuration.commandName ? given : ["bench"] + given
  }

  /// Programs of nodes have a second between SIGTERM and SIGKILL; the tenth is for the threads that see to it.
  private static let programsEnd: Nanoseconds = .milliseconds(1_100)

  /// As `main`, but answers the status in place of ending the process. One call at a time. Programs that nodes
  /// started have ended when it returns, unless they need more than 1.1 s.
  public static func run(
    catalogue: Catalogue, name: String = "millrace", doubles: [any ServiceDouble.Type] = [],
    arguments: [String]? = nil
  ) -> ExitStatus {
    Output.takePlaces()
    RunnerContext.current.withLock {
      $0 = RunnerContext(catalogue: catalogue, name: name, doubles: RunnerContext.standardDoubles + doubles)
    }
    Signals.surviveWrites()
    Output.forgetRefusal()
    defer { endPrograms() }
    let status = perform(arguments)
    guard let refusal = Output.refusal else { return status }
    Output.error.write(
      "error: cannot write standard output: \(refusal); make room or lead it to another place\n")
    return status == .done ? .usage : status
  }

  /// Waits for the programs of nodes, and kills them when somebody asks for the end again meanwhile.
  private static func endPrograms() {
    let look: Nanoseconds = .milliseconds(20)
    var left = programsEnd
    while left > 0, !Programs.wait(atMost: .nanoseconds(min(look, left))) {
      if Signals.isAskedToStop { Programs.killAll() }
      left -= look
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
      return answer(error)
    }
  }

  /// What ArgumentParser throws: a wrong call, or help, a version, a completion script to be printed.
  private static func answer(_ error: any Error) -> ExitStatus {
    let message = RootCommand.fullMessage(for: error)
    if RootCommand.exitCode(for: error).isSuccess {
      Output.standard.write(message.isEmpty ? "" : message + "\n")
      return .done
    }
    Output.error.write(message + "\n")
    return .usage
  }
}

/// What a runner's process ends with.
public enum ExitStatus: Int32, Error, Sendable, Hashable, CaseIterable {
  /// Everything was done; a graph ended by itself, by its duration, or was drained on request.
  case done = 0
  /// The graph was refused: by the checks, or because a node could not be made.
  case refused = 1
  /// The call was wrong, or a file it names cannot be written.
  case usage = 2
  /// A node failed while its graph ran, and ended it or was cut off from it; or a service node failed a case of its test.
  case failed = 3
  /// A service refused, and would refuse again: credentials, quota, certificate. Nothing else failed.
  case serviceRefused = 4
  /// The run was not what its golden run was.
  case differed = 5
  /// Stopped by a second request to end, or asked to end before anything started (128 and the number of SIGINT).
  case interrupted = 130
}

/// What the subcommands need to know of the program they are in.
struct RunnerContext: Sendable {
  var catalogue = Catalogue()
  var name = "millrace"
  var doubles = Self.standardDoubles

  static let standardDoubles: [any ServiceDouble.Type] = [BailianConformance.self, BackendDouble.self]

  /// ArgumentParser makes commands itself and hands nothing through, so this has to be found by name.
  static let current = Mutex(RunnerContext())

  static var catalogue: Catalogue { current.withLock { $0.catalogue } }
  static var doubles: [any ServiceDouble.Type] { current.withLock { $0.doubles } }
}

/// The program: everything is in its subcommands.
struct RootCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: RunnerContext.current.withLock { $0.name },
      abstract: "Runs media graphs: typed nodes, links between them, declared in JSON.",
      discussion: """
        Exit status: 0 done, 1 the graph was refused, 2 the call was wrong, 3 a node failed while running, 4 a service \
        refused, 5 the run differs from its golden run, 130 interrupted.
        """,
      version: MillraceCommand.version,
      subcommands: subcommands)
  }

  /// Without those of parts that this build does without.
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
    return commands + [DoubleCommand.self, TestNodeCommand.self]
  }
}
