internal import MillraceCore

/// A checked graph as a picture: as SVG laid out here, or as text for Graphviz or Mermaid.
///
/// A pure function of plan and notes: the same graph gives the same bytes. A value that is secret as a whole is
/// shown as `(secret)`, and what is secret of others as a mark.
public struct GraphDrawing: Sendable {
  /// Which way packets flow in the SVG drawing.
  public enum Direction: String, Sendable, Hashable, CaseIterable {
    /// To the right while that stays within the width of a page, else whichever is narrower.
    case automatic
    /// From left to right.
    case right
    /// From top to bottom.
    case down
  }

  /// What is drawn.
  public let plan: GraphPlan
  /// What is shown beside it.
  public let notes: DrawingNotes
  /// Links that close a cycle. They run against the flow of the drawing, and only an asynchronous path makes them legal.
  let feedback: Set<Int>
  private let secrets: Secrets

  /// A drawing of a plan.
  public init(_ plan: GraphPlan, notes: DrawingNotes = DrawingNotes()) {
    self.plan = plan
    self.notes = notes
    feedback = plan.feedbackLinks
    secrets = plan.secrets
  }

  // MARK: Words

  /// Longest value of a parameter in a drawing, in characters; longer ones lose their middle.
  static let longestValue = 26
  /// Most parameters shown of one node.
  static let mostParameters = 5

  /// The parameters that say what this node does here: those that differ from their default. In front of them, what it ends with.
  func parameters(of node: GraphPlan.Node) -> [(name: String, value: String)] {
    let end = node.endsWith.map { ("endsWith", Self.shortened(plan.nodes[$0].name)) }
    let given = node.contract.parameters.compactMap { parameter -> (name: String, value: String)? in
      guard let value = node.parameters[parameter.name], value != parameter.defaultValue else { return nil }
      if node.isSecret(parameter.name) { return (parameter.name, "(secret)") }
      let unit = parameter.unit.isEmpty ? "" : " \(parameter.unit)"
      // Before it is shortened: half a secret is found by nobody.
      var text = parameter.shown(value).plainText
      if case .number = value {} else if case .integer = value {} else { text = secrets.redacting(text) }
      return (parameter.name, Self.shortened(text) + unit)
    }
    let told = (end.map { [$0] } ?? []) + given
    guard told.count > Self.mostParameters else { return told }
    let rest = told.count - Self.mostParameters + 1
    return told.prefix(Self.mostParameters - 1) + [("and \(rest) more", "")]
  }

  /// What a link carries, and how it holds it.
  func lines(ofLink index: Int) -> [String] {
    let link = plan.links[index]
    return [link.shape.format.description, link.holding] + (notes.links[index] ?? [])
  }

  /// The line under the title.
  var subtitle: String {
    if let subtitle = notes.subtitle { return subtitle }
    return [
      Figures.counted(plan.nodes.count, "node"), Figures.counted(plan.links.count, "link"),
      "\(plan.clock.rawValue) clock",
    ].joined(separator: " · ")
  }

  /// A text without its middle, so that both a path's beginning and its file name stay readable.
  static func shortened(_ text: String) -> String {
    let scalars = Array(text.unicodeScalars)
    guard scalars.count > longestValue else { return text }
    let head = (longestValue - 1) / 3
    var result = String.UnicodeScalarView()
    result.append(contentsOf: scalars.prefix(head))
    result.append("…")
    result.append(contentsOf: scalars.suffix(longestValue - 1 - head))
    return String(result)
  }
}

extension GraphPlan.Link {
  /// How much the link holds and what it does then: `10 × 20 ms, dropOldest`, `8 packets, block`.
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
  /// As people write it: texts without quotes.
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
  /// Links that close a cycle when the graph is walked from its sources in the plan's order, by index.
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

/// A depth-first walk that notes the links leading back to a node it is still under. With a stack of its own: a graph may be a
/// chain of thousands.
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
