import MillraceCore

/// One graph file at work: the main graph, or one inclusion of another. Names are looked up within it.
struct Scope: Sendable {
  /// What a name of this graph stands for.
  enum Member: Sendable {
    /// A node, by its index in the draft.
    case node(Int)
    /// An included graph, by its index in the draft's scopes.
    case include(Int)
    /// An include that could not be read; told already.
    case broken
  }

  /// The including scope; nil for the main graph.
  let parent: Int?
  /// In front of the names of its nodes: empty, or `left.`.
  let prefix: String
  let document: GraphDocument
  /// Values of its parameters.
  var values: [String: Given] = [:]
  /// Parameters that were asked for.
  var used: Set<String> = []
  var members: [String: Member] = [:]
  /// What its nodes do on failure when they say nothing themselves.
  var onError = ErrorPolicy.stop
  /// Values given to it for parameters it does not have.
  var unknownSettings: [Argument] = []
  /// The file, comparable; empty for a graph built in Swift.
  var file = ""

  init(parent: Int?, prefix: String, document: GraphDocument) {
    self.parent = parent
    self.prefix = prefix
    self.document = document
  }

  /// As problems call it: the file, or what it is.
  var title: String {
    document.fileName.isEmpty ? "the included graph" : Problem.quoted(document.fileName)
  }
}
