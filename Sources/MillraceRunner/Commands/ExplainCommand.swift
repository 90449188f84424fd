internal import ArgumentParser
internal import MillraceGraph

/// `explain`: shows how a graph will run.
struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract:
      "Shows how a graph will run: formats, lanes, capacities, latency and memory of its nodes and links.")

  @Argument(help: "The graph file.", completion: .file(extensions: ["json"]))
  var file: String

  @OptionGroup var options: GraphOptions

  @Flag(name: .long, help: "Print JSON.")
  var json = false

  func run() throws {
    let explanation = PlanExplanation(try options.load(file))
    Output.standard.write(json ? explanation.json() : explanation.text(Output.standard.style))
  }
}
