public import MillraceCore

extension PlanMemory {
  /// The largest claims: `link "cam -> out" 1.5 TiB (6155 packets of 256 MiB, capacity 4096)`. At most three, each at least a twentieth of
  /// the total; empty when there is none.
  package func largestClaims(of plan: GraphPlan) -> String {
    let minimum = byteCount / 20
    let largest = claims.prefix(Self.maxNamedClaims).filter { $0.bytes > minimum }
    return Wording.joined(largest.map { describe($0, plan) }, by: "and")
  }

  /// The maximum number of claims that are named.
  private static let maxNamedClaims = 3

  private func describe(_ claim: Claim, _ plan: GraphPlan) -> String {
    let bytes = Figures.bytes(claim.bytes)
    let packets = "\(claim.packets) packets of \(Figures.bytes(claim.packetBytes))"
    switch claim.owner {
    case .link(let index):
      let link = plan.links[index]
      let name = Problem.quoted(plan.describe(link))
      return claim.packets == 0
        ? "link \(name) \(bytes)" : "link \(name) \(bytes) (\(packets), capacity \(link.limit))"
    case .node(let index):
      let name = Problem.quoted(plan.nodes[index].name)
      return claim.packets == 0 ? "node \(name) \(bytes)" : "node \(name) \(bytes) (\(packets))"
    case .events: return "events \(bytes) (\(packets))"
    }
  }

  /// The largest claims as the end of a sentence, `, mainly …`; empty when there is none.
  package func largestClaimsClause(of plan: GraphPlan) -> String {
    let largest = largestClaims(of: plan)
    return largest.isEmpty ? "" : "; largest: \(largest)"
  }

  /// A warning at the node that writes to the largest link when a run can use more memory than a machine has; nil when it fits.
  public func warning(of plan: GraphPlan, on machine: MachineMemory) -> Problem? {
    guard byteCount > machine.bytes else { return nil }
    let text =
      "a run can use \(Figures.bytes(byteCount)), but \(machine.limitText)\(largestClaimsClause(of: plan))"
    let hint = "reduce capacities or packet sizes"
    let node: Int? =
      switch claims.first?.owner {
      case .link(let index)?: plan.links[index].from.node
      case .node(let index)?: index
      case .events?, nil: nil
      }
    return node.flatMap { plan.nodes[$0].origin }?.name.warning(.memoryLimit, text, hint: hint)
      ?? Problem(text, code: .memoryLimit, severity: .warning, hint: hint)
  }
}

extension MachineMemory {
  /// The limit and its source: `this machine has 7.8 GiB`.
  package var limitText: String {
    switch source {
    case .machine: "this machine has \(Figures.bytes(bytes))"
    case .controlGroup(let path): "the control group \(Problem.quoted(path)) allows \(Figures.bytes(bytes))"
    }
  }
}
