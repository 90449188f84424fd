import MillraceCore

enum MemoryLimit: Check {
  static let rule = "What a run can take in memory is within what the graph allows."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    guard let limit = graph.memoryLimit, graph.isMeasurable else { return }
    let plan = graph.plan(warnings: [])
    let memory = PlanMemory(plan)
    guard memory.byteCount > limit.value else { return }
    problems.append(
      limit.place.error(
        "a run can take \(Figures.bytes(memory.byteCount)), \"memory\" allows \(Figures.bytes(limit.value))\(memory.mostOfIt(of: plan))",
        hint: "make capacities or packets smaller, or raise \"memory\""))
  }
}

extension GraphDraft {
  /// True when every node is resolved, and every link is as long and its packets as large as may be: anything else has been told, and
  /// the sum would say it again.
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
    return nodes[from.node].shape(ofOutput: from.index).flatMap { Self.packets(of: time, $0) }
  }
}
