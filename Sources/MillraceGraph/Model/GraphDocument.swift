import MillraceCore

/// What one graph file, or one description in Swift, says: names and values with their places, nothing looked up yet.
struct GraphDocument: Sendable {
  /// The graph's name; nil when it says none.
  var name: String?
  /// What problems call the file; empty for a graph built in Swift.
  var fileName = ""
  /// The folder that relative paths start in; empty for the current directory.
  var folder = ""
  /// The place of the graph as a whole.
  var place: Place
  var clock: Located<WrittenValue>?
  var onError: Located<WrittenValue>?
  /// What a run of the graph may take.
  var memory: Located<WrittenValue>?
  var parameters: [ParameterDeclaration] = []
  var nodes: [NodeDeclaration] = []
  var links: [LinkDeclaration] = []
  /// Steps against overload, as written.
  var overload: [OverloadDeclaration] = []
  /// Names of nodes that are written wrong: told already, and not known otherwise.
  var brokenNodes: [String] = []
  /// Some nodes or links could not be read, so what is missing may be among them.
  var hasUnreadNodes = false
  var hasUnreadLinks = false
  /// Ports for graphs that include this one; nil when the graph does not choose them.
  var exposed: [ExposedPort]?

  init(place: Place) { self.place = place }
}

/// A parameter of a graph.
struct ParameterDeclaration: Sendable {
  var name: Located<String>
  var type: GraphParameterType?
  /// nil: whoever runs or includes the graph must give the value.
  var defaultValue: Located<WrittenValue>?
  /// It is written wrong: told already, and its value unknown.
  var isBroken = false
}

/// The types a graph's own parameter may be declared with.
///
/// Without one, a value given from outside is read as whatever the node parameter it ends up in takes.
public enum GraphParameterType: String, Sendable, Hashable, CaseIterable {
  /// Text.
  case string
  /// A whole number.
  case integer
  /// Any number.
  case number
  /// `true` or `false`.
  case bool
  /// A file path.
  case path

  /// In words: `a whole number`.
  var words: String {
    switch self {
    case .string: "text"
    case .integer: "a whole number"
    case .number: "a number"
    case .bool: "true or false"
    case .path: "a path"
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
  /// Everything that is not a reserved key.
  var arguments: [Argument] = []
  /// Arguments whose values must never be shown, whatever they come from.
  var secrets: Set<String> = []
  /// Of an included graph: its file, and the values for its parameters.
  var path: Located<WrittenValue>?
  var settings: [Argument] = []
  /// Of a graph included from Swift: the graph itself.
  var included: GraphDescription?

  /// The node type that stands for another graph.
  static let includeType = "graph"

  var isInclude: Bool { type.value == Self.includeType }
}

/// One hop: a chain of three nodes declares two of them.
struct LinkDeclaration: Sendable {
  /// One end as written: `node` or `node.port`.
  struct End: Sendable {
    var text: Located<String>
    /// The name stands between two arrows: a port given with it may mean the input or the output.
    var isBetween: Bool
  }
  var from: End
  var to: End
  /// The hop as a whole.
  var place: Place
  var capacity: Located<WrittenValue>?
  var whenFull: Located<WrittenValue>?
}

/// A port that graphs which include this one may link to.
struct ExposedPort: Sendable {
  var name: Located<String>
  /// `node` or `node.port` inside.
  var end: Located<String>
}
