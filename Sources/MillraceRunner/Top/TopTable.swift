internal import MillraceCore
internal import MillraceGraph

/// Formats snapshots as text: a list of runs, or one run node by node.
struct TopTable {
  let style: TerminalStyle

  /// All runs, one per line.
  func list(_ snapshots: [TopSnapshot]) -> [String] {
    var table = TextTable([
      ("process", .right), ("name", .left), ("graphs", .left), ("instances", .right), ("state", .left),
      ("time", .right), ("CPU", .right), ("dropped", .right), ("missed", .right),
    ])
    for snapshot in snapshots {
      let nodes = snapshot.graphs.flatMap(\.nodes)
      table.add([
        "\(snapshot.process)", Problem.printable(snapshot.name),
        Problem.printable(snapshot.graphs.map(\.title).joined(separator: ", ")),
        "\(snapshot.graphs.reduce(0) { $0 + $1.phases.reduce(0) { $0 + $1.count } })",
        Self.state(snapshot.graphs.flatMap(\.phases)), Self.time(snapshot.graphs.map(\.duration).max() ?? 0),
        "\(Figures.number(100 * nodes.reduce(0) { $0 + $1.busy } / max(snapshot.wall, 1))) %",
        Self.count(nodes.reduce(0) { $0 + $1.dropped }),
        Self.count(nodes.reduce(0) { $0 + $1.overBudget + $1.overAge }),
      ])
    }
    return table.lines(style)
  }

  /// One run, node by node.
  /// - Parameter earlier: an earlier snapshot; rates cover the time between the two. nil for rates since the start.
  func detail(_ snapshot: TopSnapshot, since earlier: TopSnapshot?) -> [String] {
    let span = max(1, earlier.map { snapshot.now - $0.now } ?? snapshot.wall)
    let loads = snapshot.workers.enumerated().map { index, worker in
      let before = earlier.flatMap { $0.workers.indices.contains(index) ? $0.workers[index].busy : nil } ?? 0
      return "\(worker.name) \(Figures.number(100 * (worker.busy - before) / span)) %"
    }
    let head = "\(Problem.printable(snapshot.name))  process \(snapshot.process)"
    var lines = [style.paint(head, .bold), style.paint(loads.joined(separator: "  "), .dim)]
    for (number, graph) in snapshot.graphs.enumerated() {
      let before = earlier.flatMap { $0.graphs.indices.contains(number) ? $0.graphs[number] : nil }
      lines += ["", heading(graph)] + table(graph, before, span).lines(style)
    }
    return lines
  }

  private func heading(_ graph: TopSnapshot.Graph) -> String {
    let words = "\(Self.time(graph.duration)), \(Self.state(graph.phases))"
    return style.paint(Problem.printable(graph.title), .heading) + "  \(words)"
  }

  private func table(_ graph: TopSnapshot.Graph, _ before: TopSnapshot.Graph?, _ span: Double) -> TextTable {
    var table = TextTable([
      ("node", .left), ("type", .left), ("lane", .left), ("calls/s", .right), ("CPU", .right),
      ("mean call", .right), ("worst call", .right), ("missed", .right), ("waited", .right),
      ("queued", .right),
      ("dropped", .right), ("age", .right), ("oldest", .right),
    ])
    for (index, node) in graph.nodes.enumerated() {
      let old = before.flatMap { $0.nodes.indices.contains(index) ? $0.nodes[index] : nil }
      let calls = node.calls - (old?.calls ?? 0)
      let busy = node.busy - (old?.busy ?? 0)
      table.add([
        node.name, node.type, node.lane, Figures.number(1e3 * Double(calls) / span),
        "\(Figures.number(100 * busy / span, decimals: 2)) %",
        calls > 0 ? Self.time(busy / Double(calls)) : "", Self.time(node.worst),
        Self.count(node.overBudget + node.overAge), Self.count(node.waited), Self.count(node.queued),
        Self.count(node.dropped), node.age.map(Self.time) ?? "", node.worstAge.map(Self.time) ?? "",
      ])
    }
    return table
  }

  private static func count(_ value: Int) -> String { value == 0 ? "" : "\(value)" }

  private static func time(_ milliseconds: Double) -> String {
    Figures.duration(Nanoseconds((milliseconds * 1e6).rounded()))
  }

  /// `running`, or `3 running, 1 stopped` when instances are in different phases.
  private static func state(_ phases: [(phase: String, count: Int)]) -> String {
    let some = phases.filter { $0.count > 0 }
    if some.count == 1 { return some[0].phase }
    return some.map { "\($0.count) \($0.phase)" }.joined(separator: ", ")
  }
}
