internal import ArgumentParser
internal import MillraceCore
internal import MillraceGraph

/// `name=value`, as `--set` takes it.
struct Assignment: ExpressibleByArgument {
  let name: String
  let value: String

  init?(argument: String) {
    guard let mark = argument.firstIndex(of: "="), mark != argument.startIndex else { return nil }
    name = String(argument[..<mark])
    value = String(argument[argument.index(after: mark)...])
  }

  var defaultValueDescription: String { "\(name)=\(value)" }
}

/// A stretch of time with its unit: `500ms`, `10s`, `1.5min`, `2h`.
struct TimeSpan: ExpressibleByArgument {
  let nanoseconds: Nanoseconds

  /// About eleven days; anything longer is surely a slip, and would be better done without a limit.
  private static let longest: Nanoseconds = 1_000_000_000_000_000

  init?(argument: String) {
    guard let time = Self.time(argument), time > 0 else { return nil }
    nanoseconds = time
  }

  /// A time or a stretch of time as it is written; nil when it is none. Zero is one.
  static func time(_ text: String) -> Nanoseconds? {
    TimeText.nanoseconds(text, units: [.ms, .s, .min, .h]).flatMap { $0 <= longest ? $0 : nil }
  }
}

/// The clocks, as words of the command line.
enum ClockChoice: String, ExpressibleByArgument, CaseIterable {
  case realtime, virtual
  var kind: Clock.Kind { self == .realtime ? .realtime : .virtual }
}

/// What every command that loads a graph takes.
struct GraphOptions: ParsableArguments {
  @Option(
    name: .long, parsing: .singleValue,
    help: ArgumentHelp(
      "A value for a parameter of the graph; may be given several times.", valueName: "name=value"))
  var set: [Assignment] = []

  @Option(name: .long, help: "The clock, in place of the one the graph asks for.")
  var clock: ClockChoice?

  /// The settings, as graph loading takes them.
  func settings(instance: Int? = nil) -> GraphSettings {
    var values: [String: String] = [:]
    for assignment in set {
      let number = instance.map(String.init) ?? "1"
      values[assignment.name] = assignment.value.replacing(Self.instanceMark, with: number)
    }
    return GraphSettings(set: values, clock: clock?.kind)
  }

  /// In a `--set` value this stands for the number of the instance.
  static let instanceMark = "{instance}"

  /// True when instances differ in their parameters.
  var differsByInstance: Bool { self.set.contains { $0.value.contains(Self.instanceMark) } }

  /// Loads a graph, or tells what is wrong with it and ends the command. Warnings are told, too.
  func load(_ path: String, instance: Int? = nil) throws -> GraphPlan {
    do throws(Problems) {
      let plan = try Graph.load(
        path: path, settings: settings(instance: instance), catalogue: RunnerContext.catalogue)
      if !plan.warnings.isEmpty && instance ?? 1 == 1 { Self.tell(Problems(plan.warnings)) }
      return plan
    } catch {
      Self.tell(error)
      throw ExitStatus.refused
    }
  }

  /// Problems on standard error; with the line and a mark under the place when a person reads along.
  static func tell(_ problems: Problems) {
    Output.error.write(problems.rendered(excerpts: Output.error.isTerminal) + "\n")
  }
}
