public import MillraceCore

extension PlanMemory {
  /// What takes most, in words: `link "cam -> out" 1.5 TiB (6155 packets of 256 MiB; it holds 4096)`. A few claims, none of them less
  /// than a twentieth of the whole; empty when none stands out.
  package func largestClaims(of plan: GraphPlan) -> String {
    let least = byteCount / 20
    let largest = claims.prefix(Self.mostNamed).filter { $0.bytes > least }
    return Wording.joined(largest.map { words(for: $0, plan) }, by: "and")
  }

  /// Most claims that are named. Once those are smaller, the next check names the next.
  private static let mostNamed = 3

  private func words(for claim: Claim, _ plan: GraphPlan) -> String {
    let bytes = Figures.bytes(claim.bytes)
    let packets = "\(claim.packets) packets of \(Figures.bytes(claim.packetBytes))"
    switch claim.owner {
    case .link(let index):
      let link = plan.links[index]
      let name = Problem.quoted(plan.describe(link))
      return claim.packets == 0
        ? "link \(name) \(bytes)" : "link \(name) \(bytes) (\(packets); it holds \(link.limit))"
    case .node(let index):
      let name = Problem.quoted(plan.nodes[index].name)
      return claim.packets == 0 ? "node \(name) \(bytes)" : "node \(name) \(bytes) (\(packets))"
    case .events: return "events \(bytes) (\(packets))"
    }
  }

  /// `most of it: …` behind a semicolon; empty when nothing stands out.
  package func mostOfIt(of plan: GraphPlan) -> String {
    let largest = largestClaims(of: plan)
    return largest.isEmpty ? "" : "; most of it: \(largest)"
  }

  /// A warning when a run can take more than a machine has, at the node that writes to the largest link; nil when it fits.
  public func warning(of plan: GraphPlan, on machine: MachineMemory) -> Problem? {
    guard byteCount > machine.bytes else { return nil }
    let text = "a run can take \(Figures.bytes(byteCount)), and \(machine.words)\(mostOfIt(of: plan))"
    let hint = "make capacities or packets smaller"
    let node: Int? =
      switch claims.first?.owner {
      case .link(let index)?: plan.links[index].from.node
      case .node(let index)?: index
      case .events?, nil: nil
      }
    return node.flatMap { plan.nodes[$0].origin }?.name.warning(text, hint: hint)
      ?? Problem(text, severity: .warning, hint: hint)
  }
}

extension MachineMemory {
  /// Who sets the limit, and what it is: `this machine has 7.8 GiB`.
  package var words: String {
    switch source {
    case .machine: "this machine has \(Figures.bytes(bytes))"
    case .controlGroup(let path): "the control group \(Problem.quoted(path)) allows \(Figures.bytes(bytes))"
    }
  }
}
