public import MillraceCore

/// Where a planned node and its parameters were written.
public struct NodeOrigin: Sendable {
  /// Its name.
  public let name: Place
  /// The values given to it, by parameter.
  public let parameters: [String: Place]
}

extension GraphPlan.Node {
  /// Puts what is wrong with the node at the place in the graph file it is about: at the value of the parameter, if it names
  /// one that was given there, else at the node's name. The words are shown as they are; what the engine says holds no secret.
  public func problem(_ problem: NodeProblem) -> Problem {
    guard let place = problem.parameter.flatMap({ origin?.parameters[$0] }) ?? origin?.name else {
      return Problem(problem.text, path: JSONPath([.key("nodes"), .key(name)]), hint: problem.cure)
    }
    return place.error(problem.text, hint: problem.cure)
  }
}
