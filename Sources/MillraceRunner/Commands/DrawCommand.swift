internal import ArgumentParser
internal import MillraceGraph

/// `draw`: a graph as a picture.
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
    commandName: "draw", abstract: "Draws a graph, as SVG or as text for Graphviz or Mermaid.")

  @Argument(help: "A graph file.", completion: .file(extensions: ["json"]))
  var file: String

  @OptionGroup var options: GraphOptions

  @Option(name: .long, help: "The form; without it the ending of the output file decides, and then SVG.")
  var format: Form?

  @Option(name: .long, help: "Which way packets flow in an SVG drawing.")
  var direction: Flow = .automatic

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Where to write it; without it, standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  private var form: Form {
    if let format { return format }
    let endings: [(String, Form)] = [
      (".dot", .dot), (".gv", .dot), (".mmd", .mermaid), (".mermaid", .mermaid),
    ]
    return endings.first { output?.hasSuffix($0.0) == true }?.1 ?? .svg
  }

  /// Endings of pictures that `draw` does not make; an SVG under such a name opens nowhere.
  private static let otherPictures = ["png", "jpg", "jpeg", "gif", "webp", "pdf"]

  func validate() throws {
    guard format == nil, let output else { return }
    guard let ending = Self.otherPictures.first(where: { output.lowercased().hasSuffix(".\($0)") }) else {
      return
    }
    throw ValidationError(
      "draw writes SVG, Graphviz or Mermaid and no .\(ending): name a .svg, .dot or .mmd file, or give --format."
    )
  }

  func run() throws {
    let plan = try options.load(file)
    let sources = try ReadingClaims([plan])
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
