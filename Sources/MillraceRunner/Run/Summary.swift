internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// What happened, once it is over: runs of the same graph taken together.
struct Summary {
  private let plan: GraphPlan
  private let title: String
  /// Time on the wall from start to end.
  private let wall: Nanoseconds
  private var reports: [RunReport] = []
  /// The plan of each run, whose paths may differ, and what the event board knows it by.
  private var labelledPlans: [(plan: GraphPlan, label: String)] = []

  /// Most written files told by name.
  private static let mostFiles = 32

  init(_ plan: GraphPlan, title: String, wall: Nanoseconds) {
    self.plan = plan
    self.title = title
    self.wall = wall
  }

  /// Takes a run in.
  /// - Parameters:
  ///   - plan: its plan: that of the summary, but for parameters.
  ///   - label: what its nodes are called by in front of their names.
  mutating func add(_ report: RunReport, _ plan: GraphPlan, label: String) {
    reports.append(report)
    labelledPlans.append((plan, label))
  }

  // MARK: Text

  /// The summary for a terminal.
  /// - Parameter board: what nodes said of the files they wrote.
  func text(_ style: TerminalStyle, board: EventBoard) -> String {
    var lines = [style.paint(headline, .heading)]
    lines += ["", style.paint("Nodes", .bold)] + nodeTable.lines(style)
    if !plan.links.isEmpty { lines += ["", style.paint("Links", .bold)] + linkTable.lines(style) }
    let outputs = outputLines(board)
    if !outputs.isEmpty { lines += ["", style.paint("Written", .bold)] + outputs }
    let remarks = self.remarks
    if !remarks.isEmpty { lines += [""] + remarks.map { style.paint($0, .yellow) } }
    return lines.joined(separator: "\n") + "\n"
  }

  private func sum(_ pick: (RunReport) -> Int) -> Int { reports.reduce(0) { $0 + pick($1) } }
  private func sum(of node: Int, _ pick: (NodeReport) -> Int) -> Int { sum { pick($0.nodes[node]) } }
  private func sum(ofLink link: Int, _ pick: (LinkReport) -> Int) -> Int { sum { pick($0.links[link]) } }

  private var headline: String {
    let failed = reports.count { $0.failure != nil }
    let time = reports.map(\.duration).max() ?? 0
    var longest = Figures.duration(time / 1_000_000 * 1_000_000)
    if plan.clock == .virtual {
      let speed = Figures.number(Double(time) / Double(max(wall, 1)), decimals: 0)
      longest = "\(longest) of graph time in \(Figures.duration(wall / 1_000 * 1_000)) (\(speed) × real time)"
    }
    let first = reports.compactMap(\.timeToFirstPacket).max()
    var parts = [
      "\(title): \(failed == 0 ? "done" : reports.count == 1 ? "failed" : "\(failed) failed") after \(longest)"
    ]
    if reports.count > 1 { parts.insert("\(reports.count) runs", at: 1) }
    if let first { parts.append("first packet through after \(Figures.duration(first / 1_000 * 1_000))") }
    parts.append("\(Figures.bytes(sum(\.poolBytes))) of media memory")
    return parts.joined(separator: ", ")
  }

  private var nodeTable: TextTable {
    var table = TextTable([
      ("node", .left), ("type", .left), ("packets in", .right), ("out", .right), ("CPU", .right),
      ("mean call", .right),
      ("worst call", .right), ("over budget", .right), ("waited", .right), ("restarts", .right),
    ])
    for (index, node) in plan.nodes.enumerated() {
      let calls = sum(of: index, \.activations)
      let busy = reports.reduce(Int64(0)) { $0 + $1.nodes[index].busy }
      let worst = reports.map { $0.nodes[index].worst }.max() ?? 0
      table.add([
        node.name, node.contract.type, count(sum(of: index, \.packetsIn)),
        count(sum(of: index, \.packetsOut)),
        time(busy), calls == 0 ? "" : time(busy / Int64(calls)), time(worst),
        count(sum(of: index, \.overBudget)),
        count(sum(of: index) { $0.blocked + $0.starved }), count(sum(of: index, \.restarts)),
      ])
    }
    return table
  }

  private var linkTable: TextTable {
    var table = TextTable([
      ("link", .left), ("carried", .left), ("packets", .right), ("oldest dropped", .right),
      ("newest dropped", .right),
      ("stale dropped", .right), ("left over", .right), ("most queued", .right),
    ])
    for (index, link) in plan.links.enumerated() {
      let most = reports.map { $0.links[index].highWater }.max() ?? 0
      table.add([
        plan.describe(link), link.shape.format.description, "\(sum(ofLink: index, \.pushed))",
        count(sum(ofLink: index, \.droppedOldest)), count(sum(ofLink: index, \.droppedNewest)),
        count(sum(ofLink: index, \.droppedStale)), count(sum(ofLink: index, \.discarded)),
        "\(most) of \(link.limit)",
      ])
    }
    return table
  }

  private func count(_ value: Int) -> String { value == 0 ? "" : "\(value)" }
  private func time(_ value: Nanoseconds) -> String { value == 0 ? "" : Figures.duration(value) }

  /// Files of nodes at the end of the graphs, each once, with their size now and what the node said of them.
  private func outputLines(_ board: EventBoard) -> [String] {
    var lines: [String] = []
    var told: Set<String> = []
    for (plan, label) in labelledPlans {
      for node in plan.nodes where node.isSink && !node.secrets.contains("path") {
        guard case .string(let path)? = node.parameters["path"], told.insert(path).inserted else { continue }
        guard told.count <= Self.mostFiles else { continue }
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
        let words = board.written(by: node.name, label: label).map { " (\($0))" } ?? ""
        lines.append("  \(path)  \(Figures.bytes(Int(status.st_size)))\(words)")
      }
    }
    if told.count > Self.mostFiles { lines.append("  and \(told.count - Self.mostFiles) more") }
    return lines
  }

  /// What went wrong without ending anything.
  private var remarks: [String] {
    var remarks: [String] = []
    let leaked = sum(\.leakedBlocks)
    if leaked > 0 {
      remarks.append("\(Figures.counted(leaked, "block")) of media memory not given back by a node")
    }
    let lost = sum(\.lostEvents)
    if lost > 0 { remarks.append("\(Figures.counted(lost, "event")) lost on the way to this program") }
    for name in Set(reports.flatMap(\.detachedNodes)).sorted() {
      remarks.append("node \"\(name)\" did not return when stopped; its thread was left behind")
    }
    return remarks
  }
}
