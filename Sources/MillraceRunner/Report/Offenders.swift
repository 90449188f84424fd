internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// What deserves a look first: everything that went wrong or missed what was promised, the worst of it on top.
struct Offenders {
  struct Item {
    /// Something was lost or broke; else something was only slower or older than it should be.
    var isSerious: Bool
    /// What it is about, in a word or two, and what happened.
    var subject: String
    var text: String
  }

  private(set) var items: [Item] = []

  init(_ merged: MergedReport) {
    for failure in merged.failures { add(true, "Node \(failure.node) failed", failure.text) }
    for name in Set(merged.runs.flatMap(\.report.detachedNodes)).sorted() {
      add(true, "Node \(name) did not return", "when it was stopped; its thread was left behind.")
    }
    addDrops(merged)
    for node in merged.nodes { addNode(node, merged) }
    let leaked = merged.sum(\.leakedBlocks)
    if leaked > 0 {
      add(true, "Media memory", "\(Figures.counted(leaked, "block")) not given back by a node.")
    }
    let lost = merged.sum(\.lostEvents)
    if lost > 0 { add(false, "Events", "\(lost) came faster than the program took them, and were lost.") }
    items = items.filter(\.isSerious) + items.filter { !$0.isSerious }
  }

  private mutating func add(_ isSerious: Bool, _ subject: String, _ text: String) {
    items.append(Item(isSerious: isSerious, subject: subject, text: text))
  }

  private mutating func addDrops(_ merged: MergedReport) {
    for link in merged.links.sorted(by: { $0.dropped > $1.dropped }) where link.dropped > 0 {
      let reasons = [
        (link.droppedOldest, "too old when it was full"), (link.droppedNewest, "new when it was full"),
        (link.droppedStale, "of an interrupted reply"), (link.droppedShed, "to shed load"),
      ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
      // Sound of a reply that nobody wants to hear any more is meant to go, and so is what an overloaded machine sheds.
      let isMeant = link.droppedOldest + link.droppedNewest == 0
      add(!isMeant, "Link \(link.name)", "dropped \(Self.list(reasons)).")
    }
  }

  private mutating func addNode(_ node: NodeReport, _ merged: MergedReport) {
    if node.restarts > 0 {
      add(true, "Node \(node.name)", "was made anew \(Figures.counted(node.restarts, "time")) after a fault.")
    }
    if node.overAge > 0, let maxAge = node.maxAge, let worst = node.worstAge {
      add(
        true, "Node \(node.name)",
        "got packets older than \(Figures.duration(maxAge)) in \(Figures.counted(node.overAge, "call")), the oldest \(Figures.duration(worst)) old."
      )
    }
    if node.overBudget > 0 && node.lane == .voice {
      let share = Figures.number(
        100 * Double(node.overBudget) / Double(max(1, node.activations)), decimals: 2)
      add(
        false, "Node \(node.name)",
        "took longer than its \(Figures.duration(Nanoseconds(node.budget) * 1_000)) in \(Figures.counted(node.overBudget, "call")) (\(share) %), at worst \(Figures.duration(node.worst))."
      )
    }
    if node.starved > 0 {
      add(
        false, "Node \(node.name)",
        "found no free block \(Figures.counted(node.starved, "time")): something keeps more packets than it says."
      )
    }
  }

  /// `3 a, 2 b and 1 c`.
  private static func list(_ parts: [String]) -> String {
    guard let last = parts.last, parts.count > 1 else { return parts.first ?? "" }
    return parts.dropLast().joined(separator: ", ") + " and " + last
  }
}
