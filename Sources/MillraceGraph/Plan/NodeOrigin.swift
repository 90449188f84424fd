public import MillraceCore

/// Where a planned node and its parameters are written.
public struct NodeOrigin: Sendable {
  /// The place of its name.
  public let name: Place
  /// The places of the values it sets, by parameter.
  public let parameters: [String: Place]
}

extension GraphPlan.Node {
  /// A problem of the node at its place in the graph file: at the value of the parameter it names, otherwise at the node's name. The text
  /// is used as it is; problems from the engine contain no secret.
  public func problem(_ problem: NodeProblem) -> Problem {
    guard let place = problem.parameter.flatMap({ origin?.parameters[$0] }) ?? origin?.name else {
      return Problem(
        problem.text, code: .nodeRejected, path: JSONPath([.key("nodes"), .key(name)]), hint: problem.cure)
    }
    return place.error(.nodeRejected, problem.text, hint: problem.cure)
  }
}
