import MillraceCore

/// The main graph, or one inclusion of another graph. Names are resolved within it.
struct Scope: Sendable {
  /// What a name resolves to.
  enum Member: Sendable {
    /// A node, by its index in the draft.
    case node(Int)
    /// An included graph, by its index in the draft's scopes.
    case include(Int)
    /// A node or include that could not be read, which has been reported.
    case invalid
  }

  /// The including scope; nil for the main graph.
  let parent: Int?
  /// The prefix of its nodes' names: empty, or `left.`.
  let prefix: String
  let document: GraphDocument
  /// Values of its parameters.
  var values: [String: ExpandedValue] = [:]
  /// Parameters that are used.
  var used: Set<String> = []
  var members: [String: Member] = [:]
  /// The error policy of nodes without one of their own.
  var onError = ErrorPolicy.stop
  /// Values that the including graph sets for parameters it does not have.
  var unknownSettings: [Argument] = []
  /// The normalized path of the file; empty for a graph built in Swift.
  var file = ""

  init(parent: Int?, prefix: String, document: GraphDocument) {
    self.parent = parent
    self.prefix = prefix
    self.document = document
  }

  /// What problems call it: the file in quotes, or `the included graph`.
  var title: String {
    document.fileName.isEmpty ? "the included graph" : Problem.quoted(document.fileName)
  }
}
