public import MillraceCore

/// Why a bench could not be created.
public enum BenchProblem: Error, Sendable, CustomStringConvertible {
  /// Parameters or ports that the contract does not have, or values that it does not allow; one text for each.
  case setup([String])
  /// The contract's `resolve` found problems.
  case resolution([ResolutionProblem])
  /// The node's initialiser failed.
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

/// A fault of the node during a call, with the message of its `explain`.
public struct BenchFault: Error, Sendable, CustomStringConvertible {
  /// The fault that the node threw, or that emitting caused.
  public let fault: NodeFault
  /// The node's message; nil when it has none.
  public let text: String?

  public var description: String {
    text ?? "the node failed: \(fault.reason), code \(fault.code), detail \(fault.detail)"
  }
}
