internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The results of a run that are shown in the drawing of its graph.
enum ReportNotes {
  static func notes(of merged: MergedReport) -> DrawingNotes {
    var notes = DrawingNotes()
    for (node, planned) in zip(merged.nodes, merged.plan.nodes) {
      notes.nodes[planned.name] = lines(of: node, merged)
    }
    for (index, link) in merged.links.enumerated() { notes.links[index] = lines(of: link, merged) }
    return notes
  }

  private static func lines(of node: NodeReport, _ merged: MergedReport) -> [String] {
    let share = Figures.number(100 * merged.processorShare(node.busy), decimals: 2)
    var lines = ["\(share) % CPU · worst \(Figures.duration(node.worst))"]
    if let age = node.ages?.quantile(0.99) { lines.append("p99 age \(Figures.duration(age))") }
    if node.overBudget > 0 { lines.append("\(node.overBudget) over budget") }
    if node.overAge > 0 { lines.append("\(node.overAge) too old") }
    if node.restarts > 0 { lines.append("restarted \(Figures.counted(node.restarts, "time"))") }
    return lines
  }

  private static func lines(of link: LinkReport, _ merged: MergedReport) -> [String] {
    let rate = "\(Figures.number(merged.rate(link.pushed))) /s"
    return [link.dropped == 0 ? rate : "\(rate) · \(link.dropped) dropped"]
  }
}
