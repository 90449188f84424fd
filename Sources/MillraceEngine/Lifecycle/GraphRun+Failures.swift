internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Handling of failed nodes. On the supervisor's thread.
extension GraphRun {
  /// True while a failed node may be recreated.
  var canRestart: Bool {
    status.withLock { $0.phase == .running || $0.phase == .draining }
  }

  /// The message for a fault: the node's own with secrets removed, or the engine's message for the reason. The node is not being called.
  func explain(_ fault: NodeFault, of node: Int) -> String {
    let place = places[node]
    let cell = unsafe place.strand.cells + place.index
    if let text = unsafe cell.pointee.executor._withUnsafeGuaranteedRef({ $0.explain(fault) }) {
      return secrets.redacting(text)
    }
    return switch fault.reason {
    case .badInput: "the input does not match its format (code \(fault.code), position \(fault.detail))"
    case .system: "system error: \(SystemError.text(fault.code))"
    case .library: "its library returned error \(fault.code)"
    case .poolEmpty:
      "the graph's pool has no free block: a node holds more packets than its contract declares"
    case .outputFull: explainFull(Int(fault.code), Int(fault.detail), of: node)
    case .gone: "a resource it depends on is gone (code \(fault.code))"
    case .stalled: "no data for \(fault.detail / 1_000_000) ms"
    case .refused:
      "refused by its service (code \(fault.code)); check the key, the quota and the certificate"
    case .custom: "failed with code \(fault.code), detail \(fault.detail)"
    }
  }

  /// Which link of a node's output was full, and the cure.
  private func explainFull(_ output: Int, _ number: Int, of node: Int) -> String {
    let links = plan.links.filter { $0.from == GraphPlan.End(node: node, port: output) }
    guard links.indices.contains(number) else {
      return "emitted more packets than its output has room for"
    }
    let link = links[number]
    let name = Problem.quoted(plan.describe(link))
    if link.policy == .fail {
      return "link \(name) was full with \(link.limit) packets and has policy \"fail\"; "
        + "raise its capacity, or choose another policy"
    }
    return
      "emitted more packets into link \(name) in one call than its contract allows (\(link.shape.burst)); "
      + "report it to the node's author"
  }

  /// Posts the decision about a failed node to its worker.
  func decide(_ decision: FailureDecision, for node: Int) {
    engine.supervisor.threadOwner.assertIsCurrent()
    failureDecisions.put(decision, for: node)
    places[node].strand.request(Strand.Request.replace)
  }

  /// Creates a node of the plan again. The problem it may return holds no secret. Control side.
  func recreate(_ node: Int) -> Result<AnyExecutor, NodeProblem> {
    let planned = plan.nodes[node]
    guard let entry = engine.catalogue[planned.contract.type] else {
      return .failure(NodeProblem("type \"\(planned.contract.type)\" is not in the engine's catalogue"))
    }
    do throws(NodeProblem) {
      return .success(try entry.make(RunBuilder.setup(node, of: self)))
    } catch {
      return .failure(secrets.redacting(error))
    }
  }

  /// On a virtual clock: recreates a failed node at a graph time.
  func restart(_ node: Int, at time: Nanoseconds) {
    at(.nanoseconds(time)) { [self] in
      decisions.begin()
      engine.supervisor.post(.restart(self, node: node))
    }
  }
}
