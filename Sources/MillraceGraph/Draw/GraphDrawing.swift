internal import MillraceCore

/// A drawing of a graph: as SVG, or as text for Graphviz or Mermaid.
///
/// Deterministic: the same plan and notes give the same bytes. A secret value is shown as `(secret)`, the secret parts of others as
/// `•••`.
public struct GraphDrawing: Sendable {
  /// The direction in which packets flow in the SVG drawing.
  public enum Direction: String, Sendable, Hashable, CaseIterable {
    /// To the right if that fits the width of a page, otherwise whichever is narrower.
    case automatic
    /// From left to right.
    case right
    /// From top to bottom.
    case down
  }

  /// The graph.
  public let plan: GraphPlan
  /// Additional lines.
  public let notes: DrawingNotes
  /// Links that close a cycle, drawn against the flow.
  let feedback: Set<Int>
  private let secrets: Secrets

  /// A drawing of a plan.
  public init(_ plan: GraphPlan, notes: DrawingNotes = DrawingNotes()) {
    self.plan = plan
    self.notes = notes
    feedback = plan.feedbackLinks
    secrets = plan.secrets
  }

  // MARK: Text

  /// The maximum length of a parameter's value in characters; longer ones are shortened in the middle.
  static let maxValueLength = 26
  /// The maximum number of parameters shown for one node.
  static let maxParameters = 5

  /// The node's `endsWith`, and its parameters that differ from their default.
  func parameters(of node: GraphPlan.Node) -> [(name: String, value: String)] {
    let end = node.endsWith.map { ("endsWith", Self.shortened(plan.nodes[$0].name)) }
    let given = node.contract.parameters.compactMap { parameter -> (name: String, value: String)? in
      guard let value = node.parameters[parameter.name], value != parameter.defaultValue else { return nil }
      if node.isSecret(parameter.name) { return (parameter.name, "(secret)") }
      let unit = parameter.unit.isEmpty ? "" : " \(parameter.unit)"
      // Redacted before it is shortened, after which part of a secret would not be recognized.
      var text = parameter.shown(value).plainText
      if case .number = value {} else if case .integer = value {} else { text = secrets.redacting(text) }
      return (parameter.name, Self.shortened(text) + unit)
    }
    let all = (end.map { [$0] } ?? []) + given
    guard all.count > Self.maxParameters else { return all }
    let rest = all.count - Self.maxParameters + 1
    return all.prefix(Self.maxParameters - 1) + [("and \(rest) more", "")]
  }

  /// The format of a link, and its capacity.
  func lines(ofLink index: Int) -> [String] {
    let link = plan.links[index]
    return [link.shape.format.description, link.holding] + (notes.links[index] ?? [])
  }

  /// The line below the title.
  var subtitle: String {
    if let subtitle = notes.subtitle { return subtitle }
    return [
      Figures.counted(plan.nodes.count, "node"), Figures.counted(plan.links.count, "link"),
      "\(plan.clock.rawValue) clock",
    ].joined(separator: " · ")
  }

  /// A text shortened in the middle, so that the beginning of a path and its file name stay readable.
  static func shortened(_ text: String) -> String {
    let scalars = Array(text.unicodeScalars)
    guard scalars.count > maxValueLength else { return text }
    let head = (maxValueLength - 1) / 3
    var result = String.UnicodeScalarView()
    result.append(contentsOf: scalars.prefix(head))
    result.append("…")
    result.append(contentsOf: scalars.suffix(maxValueLength - 1 - head))
    return String(result)
  }
}

extension GraphPlan.Link {
  /// The capacity of the link and its policy: `10 × 20 ms, dropOldest`, `8 packets, block`.
  var holding: String {
    let amount =
      if let duration = shape.packetDuration, duration > 0 {
        "\(limit) × \(Figures.duration(duration))"
      } else {
        Figures.counted(limit, "packet")
      }
    return "\(amount), \(policy.rawValue)"
  }
}

extension ParameterValue {
  /// The value with strings unquoted.
  var plainText: String {
    switch self {
    case .string(let text): text
    case .number(let value): Figures.number(value, decimals: 6)
    case .list(let values): values.map(\.plainText).joined(separator: ", ")
    default: description
    }
  }
}

extension GraphPlan {
  /// The indices of links that close a cycle in a depth-first search from the sources, in the order of the plan.
  package var feedbackLinks: Set<Int> {
    var outgoing = [[Int]](repeating: [], count: nodes.count)
    var hasInput = [Bool](repeating: false, count: nodes.count)
    for (index, link) in links.enumerated() {
      outgoing[link.from.node].append(index)
      hasInput[link.to.node] = true
    }
    let starts = nodes.indices.filter { !hasInput[$0] } + nodes.indices.filter { hasInput[$0] }
    var walk = FeedbackWalk(links: links, outgoing: outgoing, nodeCount: nodes.count)
    for start in starts { walk.visit(from: start) }
    return walk.feedback
  }
}

/// A depth-first search that records links back to a node on the current path. Not recursive, since a graph may be a chain of thousands of
/// nodes.
private struct FeedbackWalk {
  enum Mark { case new, open, done }
  let links: [GraphPlan.Link]
  let outgoing: [[Int]]
  var marks: [Mark]
  var feedback: Set<Int> = []

  init(links: [GraphPlan.Link], outgoing: [[Int]], nodeCount: Int) {
    self.links = links
    self.outgoing = outgoing
    marks = [Mark](repeating: .new, count: nodeCount)
  }

  mutating func visit(from start: Int) {
    guard marks[start] == .new else { return }
    var stack = [(node: start, next: 0)]
    marks[start] = .open
    while let (node, next) = stack.last {
      guard next < outgoing[node].count else {
        marks[node] = .done
        stack.removeLast()
        continue
      }
      stack[stack.count - 1].next += 1
      let link = outgoing[node][next]
      let target = links[link].to.node
      switch marks[target] {
      case .open: feedback.insert(link)
      case .done: break
      case .new:
        marks[target] = .open
        stack.append((target, 0))
      }
    }
  }
}
