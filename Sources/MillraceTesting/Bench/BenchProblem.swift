public import MillraceCore

/// Why a bench could not be set up around a node.
public enum BenchProblem: Error, Sendable, CustomStringConvertible {
  /// Parameters or ports the contract does not have, or values it does not allow, one text each.
  case setup([String])
  /// The contract's `resolve` objected.
  case resolution([ResolutionProblem])
  /// The node refused to be made.
  case node(NodeProblem)

  public var description: String {
    switch self {
    case .setup(let texts): texts.joined(separator: "\n")
    case .resolution(let problems):
      problems.map { problem in
        let place = problem.parameter.map { "\"\($0)\": " } ?? ""
        return place + problem.text + (problem.cure.map { "; \($0)" } ?? "")
      }.joined(separator: "\n")
    case .node(let problem): problem.description
    }
  }
}

/// A node's fault during a call, with the words its `explain` gave for it.
public struct BenchFault: Error, Sendable, CustomStringConvertible {
  /// What the node threw, or what its emitting caused.
  public let fault: NodeFault
  /// The node's words; nil when it left them to the engine.
  public let text: String?

  public var description: String {
    text ?? "the node failed: \(fault.reason), code \(fault.code), detail \(fault.detail)"
  }
}
