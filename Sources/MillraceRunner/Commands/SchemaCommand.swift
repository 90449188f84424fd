internal import ArgumentParser
internal import MillraceGraph

/// `schema`: the JSON Schema of graph files.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Prints the JSON Schema of graph files, for completion and checks in an editor.")

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Where to write it; without it, standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  func run() throws {
    let text = GraphSchema(RunnerContext.catalogue).json()
    if let output { try TextFile.write(text, to: output) } else { Output.standard.write(text) }
  }
}
