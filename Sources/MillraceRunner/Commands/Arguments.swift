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

  private static let units: [(name: String, nanoseconds: Double)] = [
    ("ms", 1e6), ("min", 60e9), ("s", 1e9), ("h", 3600e9),
  ]
  /// About eleven days; anything longer is surely a slip, and would be better done without a limit.
  private static let longest = 1e15

  init?(argument: String) {
    for unit in Self.units where argument.hasSuffix(unit.name) {
      let digits = argument.dropLast(unit.name.count)
      let isPlain =
        !digits.isEmpty && digits.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
      guard isPlain, let number = Double(digits), number > 0, number * unit.nanoseconds <= Self.longest else {
        return nil
      }
      nanoseconds = Nanoseconds((number * unit.nanoseconds).rounded())
      return
    }
    return nil
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
