import MillraceCore

/// The content of a graph file or of a description in Swift: names and values with their places, nothing resolved yet.
struct GraphDocument: Sendable {
  /// The graph's name; nil when it has none.
  var name: String?
  /// What problems call the file; empty for a graph built in Swift.
  var fileName = ""
  /// The folder that relative paths start at; empty for the current directory.
  var folder = ""
  /// The place of the graph as a whole.
  var place: Place
  var clock: Located<WrittenValue>?
  var onError: Located<WrittenValue>?
  /// The memory that a run of the graph may use.
  var memory: Located<WrittenValue>?
  var parameters: [ParameterDeclaration] = []
  var nodes: [NodeDeclaration] = []
  var links: [LinkDeclaration] = []
  /// Overload steps, as written.
  var overload: [OverloadDeclaration] = []
  /// Names of nodes that could not be read, which has been reported.
  var invalidNodes: [String] = []
  /// Nodes or links that seem to be missing may be among those that could not be read.
  var hasUnreadableNodes = false
  var hasUnreadableLinks = false
  /// Ports for graphs that include this one; nil without "expose".
  var exposed: [ExposedPort]?

  init(place: Place) { self.place = place }
}

/// A parameter of a graph.
struct ParameterDeclaration: Sendable {
  var name: Located<String>
  var type: GraphParameterType?
  /// nil when the value must be set.
  var defaultValue: Located<WrittenValue>?
  /// It could not be read, which has been reported; its value is unknown.
  var isInvalid = false
}

/// The declared type of a graph's parameter.
///
/// Without one, a value from outside is parsed as the type of the node parameter it is used for.
public enum GraphParameterType: String, Sendable, Hashable, CaseIterable {
  /// A string.
  case string
  /// An integer.
  case integer
  /// Any number.
  case number
  /// `true` or `false`.
  case bool
  /// A file path.
  case path

  /// What a value of this type must be: `an integer`.
  var requirement: String {
    switch self {
    case .string: "a string"
    case .integer: "an integer"
    case .number: "a number"
    case .bool: "true or false"
    case .path: "a file path"
    }
  }
}

/// A name with a value: a parameter of a node, or what an include sets.
struct Argument: Sendable {
  var name: Located<String>
  var value: Located<WrittenValue>
}

/// A node, or an included graph when its type is `graph`.
struct NodeDeclaration: Sendable {
  var name: Located<String>
  var type: Located<String>
  var lane: Located<WrittenValue>?
  var onError: Located<WrittenValue>?
  var budget: Located<WrittenValue>?
  var maxAge: Located<WrittenValue>?
  var endsWith: Located<WrittenValue>?
  /// Parameters: everything that is not a reserved key.
  var arguments: [Argument] = []
  /// Parameters whose values must never be shown, regardless of their origin.
  var secrets: Set<String> = []
  /// The file of an included graph, and the values for its parameters.
  var path: Located<WrittenValue>?
  var settings: [Argument] = []
  /// A graph built in Swift that is included.
  var included: GraphDescription?

  /// The node type of an included graph.
  static let includeType = "graph"

  var isInclude: Bool { type.value == Self.includeType }
}

/// One link; a chain of three nodes declares two.
struct LinkDeclaration: Sendable {
  /// One end as written: `node` or `node.port`.
  struct End: Sendable {
    var text: Located<String>
    /// The end is between two arrows, so that its port may be the input or the output.
    var isBetween: Bool
  }
  var from: End
  var to: End
  /// The link as a whole.
  var place: Place
  var capacity: Located<WrittenValue>?
  var whenFull: Located<WrittenValue>?
}

/// A port that including graphs can link to.
struct ExposedPort: Sendable {
  var name: Located<String>
  /// The port inside the graph: `node` or `node.port`.
  var end: Located<String>
}
