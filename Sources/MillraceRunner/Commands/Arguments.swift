internal import ArgumentParser
internal import MillraceCore
internal import MillraceGraph

/// `name=value`, as `--set` takes it.
struct Assignment: ExpressibleByArgument {
  /// Empty where it was not written as an assignment: it is refused without repeating it, since it may be a key.
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

/// An amount of memory with its unit: `512MB`, `1.5GiB`.
struct MemorySize: ExpressibleByArgument {
  let bytes: Int

  init?(argument: String) {
    guard let bytes = SizeText.bytes(argument), bytes > 0 else { return nil }
    self.bytes = bytes
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

  func validate() throws {
    guard set.contains(where: \.name.isEmpty) else { return }
    throw ValidationError(
      "what stands behind '--set' is no assignment; write --set name=value, such as --set input=voice.wav")
  }

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
