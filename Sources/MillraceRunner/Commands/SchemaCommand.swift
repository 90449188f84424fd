internal import ArgumentParser
internal import MillraceGraph

/// `schema`: prints the JSON Schema of graph files.
struct SchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Prints the JSON Schema of graph files, for completion and validation in editors.")

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The output file. Default: standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  func run() throws {
    let text = GraphSchema(RunnerContext.catalogue).json()
    if let output { try TextFile.write(text, to: output) } else { Output.standard.write(text) }
  }
}
