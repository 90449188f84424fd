public import MillraceCore

/// Why a graph could not be started, and the node at fault. Contains no value of a secret parameter.
///
/// `plan.nodes[...].problem(_:)` with `nodeProblem` finds its location in the graph file.
public struct StartProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// Name of the node; empty when the graph as a whole is at fault.
  public let node: String
  /// The parameter at fault, if any.
  public let parameter: String?
  /// What is wrong.
  public let text: String
  /// What to do.
  public let cure: String?

  /// A problem with its message, which must contain no secret.
  public init(node: String, parameter: String? = nil, text: String, cure: String? = nil) {
    self.node = node
    self.parameter = parameter
    self.text = text
    self.cure = cure
  }

  /// The problem a node reported when it was created.
  init(node: String, _ problem: NodeProblem) {
    self.init(node: node, parameter: problem.parameter, text: problem.text, cure: problem.cure)
  }

  /// The problem without the node's name, as `GraphPlan.Node.problem(_:)` takes it.
  public var nodeProblem: NodeProblem { NodeProblem(text, parameter: parameter, cure: cure) }

  public var description: String {
    let prefix = node.isEmpty ? "" : "node \"\(node)\": "
    return prefix + text + (cure.map { "; \($0)" } ?? "")
  }
}
