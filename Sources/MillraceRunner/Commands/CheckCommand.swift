internal import ArgumentParser
internal import MillraceCore
internal import MillraceGraph

/// `check`: loads graphs and runs all checks, without starting anything.
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Checks graph files and reports all problems.")

  @Argument(help: "Graph files.", completion: .file(extensions: ["json"]))
  var files: [String]

  @OptionGroup var options: GraphOptions

  @Flag(name: .long, help: "Print the problems as JSON.")
  var json = false

  func run() throws {
    var all = Problems()
    var accepted: [String] = []
    for file in files {
      do throws(Problems) {
        let plan = try Graph.load(
          path: file, settings: options.settings(), catalogue: RunnerContext.catalogue)
        let memory = PlanMemory(plan)
        // Only a warning: the graph may be meant for a larger machine.
        let tooLarge = MachineMemory.limit().flatMap { memory.warning(of: plan, on: $0) }.map { [$0] } ?? []
        all.append(contentsOf: Problems(plan.warnings + tooLarge))
        accepted.append(
          "\(Problem.printable(file)): ok, \(Figures.counted(plan.nodes.count, "node")), \(Figures.counted(plan.links.count, "link")), up to \(Figures.bytes(memory.byteCount)) per run\n"
        )
      } catch {
        all.append(contentsOf: error)
      }
    }
    if json {
      Output.standard.write(all.json(pretty: true) + "\n")
    } else {
      for line in accepted { Output.standard.write(line) }
      if !all.isEmpty { GraphOptions.report(all) }
    }
    if all.hasErrors { throw ExitStatus.refused }
  }
}
