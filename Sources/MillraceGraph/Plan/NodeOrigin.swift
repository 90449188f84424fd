public import MillraceCore

/// Where a planned node and its parameters were written.
public struct NodeOrigin: Sendable {
  /// Its name.
  public let name: Place
  /// The values given to it, by parameter.
  public let parameters: [String: Place]
}

extension GraphPlan.Node {
  /// Puts what a node objected to when it was made at the place in the graph file it is about. Secret values are taken out
  /// of the text.
  public func problem(_ problem: NodeProblem) -> Problem {
    let text = Secrets.removed(from: problem.text, secrets, parameters)
    let cure = problem.cure.map { Secrets.removed(from: $0, secrets, parameters) }
    guard let place = problem.parameter.flatMap({ origin?.parameters[$0] }) ?? origin?.name else {
      return Problem(text, path: JSONPath([.key("nodes"), .key(name)]), hint: cure)
    }
    return place.error(text, hint: cure)
  }
}
