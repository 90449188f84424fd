internal import ArgumentParser
internal import MillraceCore
internal import MillraceGraph

/// An argument of `--set`: `name=value`.
struct Assignment: ExpressibleByArgument {
  /// Empty when the argument has no name. The error message does not repeat the argument, because it may be a key.
  let name: String
  let value: String

  init(argument: String) {
    guard let mark = argument.firstIndex(of: "=") else {
      (name, value) = ("", "")
      return
    }
    name = String(argument[..<mark])
    value = String(argument[argument.index(after: mark)...])
  }

  var defaultValueDescription: String { "\(name)=\(value)" }
}

extension TimeSpan: ExpressibleByArgument {}

/// A memory size with a unit: `512MB`, `1.5GiB`.
struct MemorySize: ExpressibleByArgument {
  let bytes: Int

  init?(argument: String) {
    guard let bytes = SizeText.bytes(argument), bytes > 0 else { return nil }
    self.bytes = bytes
  }
}

/// The argument of `--clock`.
enum ClockChoice: String, ExpressibleByArgument, CaseIterable {
  case realtime, virtual
  var kind: Clock.Kind { self == .realtime ? .realtime : .virtual }
}

/// The options of every command that loads a graph.
struct GraphOptions: ParsableArguments {
  @Option(
    name: .long, parsing: .singleValue,
    help: ArgumentHelp("Set a parameter of the graph; can be repeated.", valueName: "name=value"))
  var set: [Assignment] = []

  @Option(name: .long, help: "The clock to use instead of the graph's.")
  var clock: ClockChoice?

  func validate() throws {
    guard set.contains(where: \.name.isEmpty) else { return }
    throw ValidationError(
      "the argument of --set is not an assignment; write --set name=value, such as --set input=voice.wav")
  }

  /// The settings for loading a graph.
  func settings(instance: Int? = nil) -> GraphSettings {
    var values: [String: String] = [:]
    for assignment in set {
      let number = instance.map(String.init) ?? "1"
      values[assignment.name] = assignment.value.replacing(Self.instanceMark, with: number)
    }
    return GraphSettings(set: values, clock: clock?.kind)
  }

  /// Placeholder for the instance number in a `--set` value.
  static let instanceMark = "{instance}"

  /// True when a parameter depends on the instance number.
  var differsByInstance: Bool { self.set.contains { $0.value.contains(Self.instanceMark) } }

  /// Loads a graph and prints its warnings. When the graph is invalid, prints the problems and throws an exit status.
  func load(_ path: String, instance: Int? = nil) throws -> GraphPlan {
    do throws(Problems) {
      let plan = try Graph.load(
        path: path, settings: settings(instance: instance), catalogue: RunnerContext.catalogue)
      if !plan.warnings.isEmpty && instance ?? 1 == 1 { Self.report(Problems(plan.warnings)) }
      return plan
    } catch {
      Self.report(error)
      throw ExitStatus.refused
    }
  }

  /// Prints problems to standard error. On a terminal, each is followed by the source line with a caret under its position.
  static func report(_ problems: Problems) {
    Output.error.write(problems.rendered(excerpts: Output.error.isTerminal) + "\n")
  }
}
