internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// What becomes of a node that has failed. On the supervisor's thread.
extension GraphRun {
  /// True while a failed node may be made anew.
  var canRestart: Bool {
    status.withLock { $0.phase == .running || $0.phase == .draining }
  }

  /// A fault in words: the node's own, with all secrets taken out, or the engine's for the reason. The node is not being
  /// called.
  func explain(_ fault: NodeFault, of node: Int) -> String {
    let place = places[node]
    let cell = unsafe place.strand.cells + place.index
    if let text = unsafe cell.pointee.executor._withUnsafeGuaranteedRef({ $0.explain(fault) }) {
      return secrets.removed(from: text)
    }
    return switch fault.reason {
    case .badInput: "the input is not what its format says (code \(fault.code), position \(fault.detail))"
    case .system: "the system refused: \(SystemError.text(fault.code))"
    case .library: "the library behind it answered error \(fault.code)"
    case .poolEmpty:
      "no free block was left in the graph's pool; a node keeps more packets than its contract says"
    case .outputFull: explainFull(Int(fault.code), Int(fault.detail), of: node)
    case .gone: "what it depends on is gone (code \(fault.code))"
    case .stalled: "nothing came for \(fault.detail / 1_000_000) ms"
    case .refused:
      "the service behind it refused (code \(fault.code)); look at its key, its quota and its certificate"
    case .custom: "it failed with code \(fault.code), detail \(fault.detail)"
    }
  }

  /// Which link of a node's output had no room, and what to do about it.
  private func explainFull(_ output: Int, _ number: Int, of node: Int) -> String {
    let links = plan.links.filter { $0.from == GraphPlan.End(node: node, port: output) }
    guard links.indices.contains(number) else {
      return "it emitted more packets than its output has room for"
    }
    let link = links[number]
    let name = Problem.quoted(plan.describe(link))
    if link.policy == .fail {
      return "link \(name) was full with \(link.limit) packets, and its policy is \"fail\"; "
        + "give it more capacity, or another policy"
    }
    return
      "it emitted more packets into link \(name) in one call than the \(link.shape.burst) its contract allows; "
      + "report it to the node's author"
  }

  /// Leaves a verdict on a failed node for its worker.
  func decide(_ decision: FailureDecision, for node: Int) {
    failureDecisions.put(decision, for: node)
    places[node].strand.request(Strand.Request.replace)
  }

  /// Makes a node of the plan once more. Its objection holds no secret. Control side.
  func recreate(_ node: Int) -> Result<AnyExecutor, NodeProblem> {
    let planned = plan.nodes[node]
    guard let entry = engine.catalogue[planned.contract.type] else {
      return .failure(NodeProblem("type \"\(planned.contract.type)\" is not in the engine's catalogue"))
    }
    do throws(NodeProblem) {
      return .success(try entry.make(RunBuilder.setup(node, of: self)))
    } catch {
      return .failure(secrets.removed(from: error))
    }
  }
}
