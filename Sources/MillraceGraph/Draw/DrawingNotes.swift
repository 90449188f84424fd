/// Lines that a drawing shows beside what it knows from the plan: live numbers, results of a run, remarks.
///
/// They are drawn as they are given; whoever makes them keeps secrets out.
public struct DrawingNotes: Sendable, Hashable {
  /// Lines for a node, by the node's name.
  public var nodes: [String: [String]]
  /// Lines for a link, by its index in the plan.
  public var links: [Int: [String]]
  /// A line under the drawing's title, in place of the one made from the plan.
  public var subtitle: String?

  /// Notes; what is left out shows nothing.
  public init(nodes: [String: [String]] = [:], links: [Int: [String]] = [:], subtitle: String? = nil) {
    self.nodes = nodes
    self.links = links
    self.subtitle = subtitle
  }
}
