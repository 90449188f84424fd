import MillraceCore

/// An end of a link, or an exposed port, whose name does not resolve to a port.
struct UnresolvedEnd: Sendable {
  enum Reason: Sendable {
    case unknownNode(String)
    /// The node has no such port, but these.
    case unknownPort(String, known: PortNames)
    /// A repeated port whose number is missing or out of range.
    case invalidNumber(port: String, range: ClosedRange<Int>)
    /// The node has no port of this direction.
    case noPorts
    /// The name of a node that has several ports.
    case ambiguous(PortNames)
    /// Several nodes of an included graph have an unlinked port of this name.
    case severalOpen(String, nodes: [String])
  }
  let reason: Reason
  let text: String
  let place: Place
  /// nil for an exposed port, which may be an input or an output.
  let isInput: Bool?
  let scope: Int
  /// The type of the node, or the included file.
  let owner: String
  /// The name of the node in the graph.
  let node: String
}

/// The names of a node's inputs or outputs, for lists and suggestions.
struct PortNames: Sendable {
  /// Every name that a link may use.
  var all: [String] = []
  /// As problems list them, a repeated port once: `"near"`, `"in1" to "in8"`.
  var shown: [String] = []

  init(_ names: [String]) {
    all = names
    shown = names.map(Problem.quoted)
  }

  init(_ ports: [PortContract]) {
    for port in ports {
      guard let last = port.copies?.upperBound else {
        all.append(port.name)
        shown.append(Problem.quoted(port.name))
        continue
      }
      all += (1...last).map { "\(port.name)\($0)" }
      shown.append("\(Problem.quoted("\(port.name)1")) to \(Problem.quoted("\(port.name)\(last)"))")
    }
  }

  static func + (left: PortNames, right: PortNames) -> PortNames {
    var sum = left
    sum.all += right.all
    sum.shown += right.shown
    return sum
  }
}
