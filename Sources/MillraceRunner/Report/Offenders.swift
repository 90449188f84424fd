internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The problems of a run, most serious first.
struct Offenders {
  struct Item {
    /// True when something failed or was lost; false when something was only too slow or too old.
    var isSerious: Bool
    /// What the problem concerns, in a few words.
    var subject: String
    /// What happened.
    var text: String
  }

  private(set) var items: [Item] = []

  init(_ merged: MergedReport) {
    for failure in merged.failures { add(true, "Node \(failure.node) failed", failure.text) }
    for name in Set(merged.runs.flatMap(\.report.detachedNodes)).sorted() {
      add(true, "Node \(name) did not return", "when it was stopped; its thread was abandoned.")
    }
    addDrops(merged)
    for node in merged.nodes { addNode(node, merged) }
    let leaked = merged.sum(\.leakedBlocks)
    if leaked > 0 {
      add(true, "Media memory", "\(Figures.counted(leaked, "block")) not returned by a node.")
    }
    let lost = merged.sum(\.lostEvents)
    if lost > 0 { add(false, "Events", "\(lost) dropped because the program read them too slowly.") }
    items = items.filter(\.isSerious) + items.filter { !$0.isSerious }
  }

  private mutating func add(_ isSerious: Bool, _ subject: String, _ text: String) {
    items.append(Item(isSerious: isSerious, subject: subject, text: text))
  }

  private mutating func addDrops(_ merged: MergedReport) {
    for link in merged.links.sorted(by: { $0.dropped > $1.dropped }) where link.dropped > 0 {
      let reasons = [
        (link.droppedOldest, "oldest when full"), (link.droppedNewest, "newest when full"),
        (link.droppedStale, "stale after an interruption"), (link.droppedShed, "to shed load"),
      ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
      // Dropping the rest of an interrupted reply, or shedding load, is intended.
      let isIntended = link.droppedOldest + link.droppedNewest == 0
      add(!isIntended, "Link \(link.name)", "dropped \(Self.list(reasons)).")
    }
  }

  private mutating func addNode(_ node: NodeReport, _ merged: MergedReport) {
    if node.restarts > 0 {
      add(
        true, "Node \(node.name)", "was restarted \(Figures.counted(node.restarts, "time")) after a failure.")
    }
    if node.overAge > 0, let maxAge = node.maxAge, let worst = node.worstAge {
      add(
        true, "Node \(node.name)",
        "received packets older than \(Figures.duration(maxAge)) in \(Figures.counted(node.overAge, "call")); the oldest was \(Figures.duration(worst)) old."
      )
    }
    if node.overBudget > 0 && node.lane == .voice {
      let share = Figures.number(
        100 * Double(node.overBudget) / Double(max(1, node.activations)), decimals: 2)
      add(
        false, "Node \(node.name)",
        "exceeded its budget of \(Figures.duration(Nanoseconds(node.budget) * 1_000)) in \(Figures.counted(node.overBudget, "call")) (\(share) %); the longest took \(Figures.duration(node.worst))."
      )
    }
    if node.starved > 0 {
      add(
        false, "Node \(node.name)",
        "found no free block \(Figures.counted(node.starved, "time")): a node holds more packets than it declares."
      )
    }
  }

  /// `3 a, 2 b and 1 c`.
  private static func list(_ parts: [String]) -> String {
    guard let last = parts.last, parts.count > 1 else { return parts.first ?? "" }
    return parts.dropLast().joined(separator: ", ") + " and " + last
  }
}
