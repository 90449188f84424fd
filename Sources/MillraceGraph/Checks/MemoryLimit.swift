import MillraceCore

enum MemoryLimit: Check {
  static let rule = "The memory that a run can use is within the limit of the graph."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    guard let limit = graph.memoryLimit, graph.isMeasurable else { return }
    let plan = graph.plan(warnings: [])
    let memory = PlanMemory(plan)
    guard memory.byteCount > limit.value else { return }
    problems.append(
      limit.place.error(
        .memoryLimit,
        "a run can use \(Figures.bytes(memory.byteCount)), but \"memory\" allows \(Figures.bytes(limit.value))\(memory.largestClaimsClause(of: plan))",
        hint: "reduce capacities or packet sizes, or raise \"memory\""))
  }
}

extension GraphDraft {
  /// True when every node is resolved, and every capacity and packet size is within its limit. Other checks report the rest, and the sum
  /// would only repeat it.
  fileprivate var isMeasurable: Bool {
    wired.count == links.count
      && nodes.allSatisfy { node in
        node.resolution != nil
          && node.outputs.indices.allSatisfy {
            node.shape(ofOutput: $0).map { $0.madeBytes <= BlockPool.maxBlockBytes } ?? true
          }
      }
      && links.allSatisfy { link in
        switch link.capacity?.value {
        case nil: true
        case .packets(let count)?: LinkCapacity.packetRange.contains(count)
        case .time(let time)?: packets(link, time).map(LinkCapacity.packetRange.contains) ?? false
        }
      }
  }

  private func packets(_ link: DraftLink, _ time: Nanoseconds) -> Int? {
    guard LinkCapacity.time(time).isInRange, let from = link.from else { return nil }
    return nodes[from.node].shape(ofOutput: from.index).flatMap { LinkDefaults.packets(of: time, $0) }
  }
}
