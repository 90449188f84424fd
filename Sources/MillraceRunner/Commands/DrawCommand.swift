internal import ArgumentParser
internal import MillraceGraph

/// `draw`: draws a graph.
struct DrawCommand: ParsableCommand {
  enum Form: String, ExpressibleByArgument, CaseIterable {
    case svg, dot, mermaid
  }

  enum Flow: String, ExpressibleByArgument, CaseIterable {
    case automatic, right, down
    var direction: GraphDrawing.Direction {
      switch self {
      case .automatic: .automatic
      case .right: .right
      case .down: .down
      }
    }
  }

  static let configuration = CommandConfiguration(
    commandName: "draw", abstract: "Draws a graph as SVG, Graphviz DOT or Mermaid.")

  @Argument(help: "The graph file.", completion: .file(extensions: ["json"]))
  var file: String

  @OptionGroup var options: GraphOptions

  @Option(
    name: .long, help: "The output format. Default: by the extension of the output file, otherwise SVG.")
  var format: Form?

  @Option(name: .long, help: "The direction of flow in an SVG drawing.")
  var direction: Flow = .automatic

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The output file. Default: standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  private var form: Form {
    if let format { return format }
    let extensions: [(String, Form)] = [
      (".dot", .dot), (".gv", .dot), (".mmd", .mermaid), (".mermaid", .mermaid),
    ]
    return extensions.first { output?.hasSuffix($0.0) == true }?.1 ?? .svg
  }

  /// Extensions of image formats that `draw` does not support. No viewer would open an SVG with such a name.
  private static let unsupportedImages = ["png", "jpg", "jpeg", "gif", "webp", "pdf"]

  func validate() throws {
    guard format == nil, let output else { return }
    guard let name = Self.unsupportedImages.first(where: { output.lowercased().hasSuffix(".\($0)") }) else {
      return
    }
    throw ValidationError(
      ".\(name) is not supported; name a .svg, .dot or .mmd file, or set --format")
  }

  func run() throws {
    let plan = try options.load(file)
    let sources = try InputFileLocks([plan])
    defer { withExtendedLifetime(sources) {} }
    let drawing = GraphDrawing(plan)
    let text =
      switch form {
      case .svg: drawing.svg(direction: direction.direction)
      case .dot: drawing.dot()
      case .mermaid: drawing.mermaid()
      }
    if let output { try TextFile.write(text, to: output) } else { Output.standard.write(text) }
  }
}
