internal import ArgumentParser
internal import Glibc
internal import MillraceCore
internal import MillraceGraph

/// `nodes`: lists the node types, or describes one.
struct NodesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "nodes", abstract: "Lists the node types, or describes one of them.")

  @Argument(
    help: "The node type to describe. Default: list all.",
    completion: .custom { _, _, _ in RunnerContext.catalogue.types })
  var type: String?

  @Flag(name: .long, help: "Print Markdown. With --output, write an index and a page for each type.")
  var markdown = false

  @Flag(name: .long, help: "Print JSON.")
  var json = false

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The directory for --markdown pages.", valueName: "directory"),
    completion: .directory)
  var output: String?

  func validate() throws {
    if markdown && json {
      throw ValidationError("--markdown cannot be combined with --json; choose one")
    }
    if output != nil && (!markdown || type != nil) {
      throw ValidationError("--output needs --markdown and no node type")
    }
  }

  func run() throws {
    let catalogue = RunnerContext.catalogue
    let style = Output.standard.style
    guard let type else {
      let listing = NodeListing(catalogue)
      if let output { return try write(listing.markdownFiles(), to: output) }
      return Output.standard.write(
        json ? listing.json() : markdown ? listing.markdown() : listing.text(style))
    }
    guard let contract = catalogue[type]?.contract else {
      let hint =
        Spelling.hint(for: type, among: catalogue.types) ?? "run \"nodes\" without a type to list all"
      Output.error.write("error: unknown node type \(Problem.quoted(type)); \(hint)\n")
      throw ExitStatus.usage
    }
    let page = NodePage(contract)
    Output.standard.write(json ? page.json() : markdown ? page.markdown() : page.text(style))
  }

  private func write(_ files: [(name: String, text: String)], to folder: String) throws {
    if unsafe mkdir(folder, 0o755) != 0 && errno != EEXIST {
      Output.error.write(
        "error: cannot create directory \(Problem.quoted(folder)): \(SystemError.text(errno)); choose another path\n"
      )
      throw ExitStatus.usage
    }
    for file in files { try TextFile.write(file.text, to: "\(folder)/\(file.name)") }
    Output.standard.write("\(folder): \(Figures.counted(files.count, "page"))\n")
  }
}
