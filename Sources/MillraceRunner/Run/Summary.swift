internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The summary that is printed at the end, for all runs of a graph.
struct Summary {
  private let merged: MergedReport
  /// The plan of each run. Their paths may differ.
  private let plans: [GraphPlan]

  /// Most written files listed.
  private static let mostFiles = 32

  init(_ merged: MergedReport, plans: [GraphPlan]) {
    self.merged = merged
    self.plans = plans
  }

  // MARK: Text

  /// The summary for a terminal.
  /// - Parameter monitor: has what nodes reported about the files they wrote.
  func text(_ style: TerminalStyle, monitor: EventMonitor) -> String {
    var lines = [style.paint(headline, .heading)]
    lines += ["", style.paint("Nodes", .bold)] + nodeTable.lines(style)
    if !merged.links.isEmpty { lines += ["", style.paint("Links", .bold)] + linkTable.lines(style) }
    let ages = ageTable
    if !ages.isEmpty { lines += ["", style.paint("Packet age", .bold)] + ages.lines(style) }
    let outputs = outputLines(monitor)
    if !outputs.isEmpty { lines += ["", style.paint("Files written", .bold)] + outputs }
    let problems = self.problems
    if !problems.isEmpty { lines += [""] + problems.map { style.paint($0, .yellow) } }
    return lines.joined(separator: "\n") + "\n"
  }

  private var headline: String {
    let failed = merged.failures.count
    let time = merged.duration
    var longest = Figures.duration(time / 1_000_000 * 1_000_000)
    if merged.isVirtual {
      let speed = Figures.number(Double(time) / Double(max(merged.wall, 1)), decimals: 0)
      longest =
        "\(longest) of graph time in \(Figures.duration(merged.wall / 1_000 * 1_000)) (\(speed) × real time)"
    }
    let end = failed == 0 ? "done" : merged.runs.count == 1 ? "failed" : "\(failed) failed"
    var parts = ["\(merged.title): \(end) after \(longest)"]
    if merged.runs.count > 1 { parts.append("\(merged.runs.count) runs") }
    if let first = merged.runs.compactMap(\.report.timeToFirstPacket).max() {
      parts.append("first packet delivered after \(Figures.duration(first / 1_000 * 1_000))")
    }
    parts.append("\(Figures.bytes(merged.sum(\.poolBytes))) of media memory")
    return parts.joined(separator: ", ")
  }

  private var nodeTable: TextTable {
    var table = TextTable([
      ("node", .left), ("type", .left), ("packets in", .right), ("out", .right), ("CPU", .right),
      ("mean call", .right), ("p99 call", .right), ("worst call", .right), ("over budget", .right),
      ("waits", .right), ("restarts", .right),
    ])
    for node in merged.nodes {
      table.add([
        node.name, node.type, count(node.packetsIn), count(node.packetsOut), time(node.busy),
        node.activations == 0 ? "" : time(node.busy / Int64(node.activations)),
        time(node.callTimes.quantile(0.99) ?? 0), time(node.worst), count(node.overBudget),
        count(node.blocked + node.starved), count(node.restarts),
      ])
    }
    return table
  }

  private var linkTable: TextTable {
    let hasShed = merged.links.contains { $0.droppedShed > 0 }
    var table = TextTable(
      [
        ("link", .left), ("format", .left), ("packets", .right), ("oldest dropped", .right),
        ("newest dropped", .right), ("stale dropped", .right),
      ] + (hasShed ? [("shed", .right)] : []) + [("discarded", .right), ("most queued", .right)])
    for link in merged.links {
      table.add(
        [
          link.name, link.format.description, "\(link.pushed)", count(link.droppedOldest),
          count(link.droppedNewest), count(link.droppedStale),
        ] + (hasShed ? [count(link.droppedShed)] : [])
          + [count(link.discarded), "\(link.highWater) of \(link.limit)"])
    }
    return table
  }

  /// The age of packets at the sinks, measured from capture.
  private var ageTable: TextTable {
    var table = TextTable([
      ("sink", .left), ("calls", .right), ("median", .right), ("p90", .right), ("p99", .right),
      ("oldest", .right),
    ])
    for node in merged.nodes {
      // On a virtual clock, packets that are not delayed have no age.
      guard let ages = node.ages, ages.largest > 0 else { continue }
      let quantiles = [0.5, 0.9, 0.99].map { time(ages.quantile($0) ?? 0) }
      table.add([node.name, "\(ages.count)"] + quantiles + [time(ages.largest)])
    }
    return table
  }

  private func count(_ value: Int) -> String { value == 0 ? "" : "\(value)" }
  private func time(_ value: Nanoseconds) -> String { value == 0 ? "" : Figures.duration(value) }

  /// The files that sinks wrote, each once, with their current size and what the node reported about them.
  private func outputLines(_ monitor: EventMonitor) -> [String] {
    var lines: [String] = []
    var seen: Set<String> = []
    for (plan, run) in zip(plans, merged.runs) {
      for node in plan.nodes where node.isSink && !node.isSecret("path") {
        guard case .string(let path)? = node.parameters["path"], seen.insert(path).inserted else { continue }
        guard seen.count <= Self.mostFiles else { continue }
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
        let detail = monitor.written(by: node.name, label: run.label).map { " (\($0))" } ?? ""
        lines.append("  \(Problem.printable(path))  \(Figures.bytes(Int(status.st_size)))\(detail)")
      }
    }
    if seen.count > Self.mostFiles { lines.append("  and \(seen.count - Self.mostFiles) more") }
    return lines
  }

  /// Problems that did not end the run.
  private var problems: [String] {
    var problems: [String] = []
    for node in merged.nodes {
      guard node.overAge > 0, let maxAge = node.maxAge else { continue }
      problems.append(
        "node \"\(node.name)\" received packets older than \(Figures.duration(maxAge)) in \(Figures.counted(node.overAge, "call")); the oldest was \(Figures.duration(node.worstAge ?? 0)) old"
      )
    }
    let leaked = merged.sum(\.leakedBlocks)
    if leaked > 0 {
      problems.append("\(Figures.counted(leaked, "block")) of media memory not returned by a node")
    }
    let lost = merged.sum(\.lostEvents)
    if lost > 0 {
      problems.append("\(Figures.counted(lost, "event")) dropped because this program read them too slowly")
    }
    for name in Set(merged.runs.flatMap(\.report.detachedNodes)).sorted() {
      problems.append("node \"\(name)\" did not return when it was stopped; its thread was abandoned")
    }
    return problems
  }
}
