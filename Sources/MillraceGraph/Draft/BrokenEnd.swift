import MillraceCore

/// An end of a link, or an exposed port, that names nothing.
struct BrokenEnd: Sendable {
  enum Reason: Sendable {
    case unknownNode(String)
    /// The node has no such port; the names it does have.
    case unknownPort(String, known: PortNames)
    /// The port is one of a row, and its number is missing or too high.
    case badNumber(port: String, range: ClosedRange<Int>)
    /// The node has no port of this direction at all.
    case noPorts
    /// Several ports would do.
    case ambiguous(PortNames)
    /// Several nodes of an included graph have an open port of this name.
    case manyOpen(String, nodes: [String])
  }
  let reason: Reason
  let text: String
  let place: Place
  /// nil for an exposed port, which may be either.
  let isInput: Bool?
  let scope: Int
  /// The node's type, or the included file.
  let owner: String
  /// The node as the graph calls it.
  let node: String
}

/// The ports of one direction, to be listed and to compare spellings with.
struct PortNames: Sendable {
  /// Every name a link may use.
  var all: [String] = []
  /// As they are listed, a row as one: `"near"`, `"in1" to "in8"`.
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
