/// Additional lines of a drawing: live numbers, results of a run, remarks.
///
/// Drawn as they are: the caller redacts secrets.
public struct DrawingNotes: Sendable, Hashable {
  /// Lines for a node, by its name.
  public var nodes: [String: [String]]
  /// Lines for a link, by its index in the plan.
  public var links: [Int: [String]]
  /// The line below the title; nil: the number of nodes and links, and the clock.
  public var subtitle: String?

  /// Notes for some nodes and links.
  public init(nodes: [String: [String]] = [:], links: [Int: [String]] = [:], subtitle: String? = nil) {
    self.nodes = nodes
    self.links = links
    self.subtitle = subtitle
  }
}
