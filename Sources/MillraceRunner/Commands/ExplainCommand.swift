internal import ArgumentParser
internal import MillraceGraph

/// `explain`: what a graph will be once it runs.
struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract:
      "Shows every node and link of a graph as it will run: formats, lanes, capacities, latency, memory.")

  @Argument(help: "A graph file.", completion: .file(extensions: ["json"]))
  var file: String

  @OptionGroup var options: GraphOptions

  @Flag(name: .long, help: "Print it as JSON.")
  var json = false

  func run() throws {
    let explanation = PlanExplanation(try options.load(file))
    Output.standard.write(json ? explanation.json() : explanation.text(Output.standard.style))
  }
}
