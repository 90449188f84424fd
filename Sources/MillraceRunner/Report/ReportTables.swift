internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// The tables of a report: nodes, budgets, links, instances.
struct ReportTables {
  private let merged: MergedReport

  /// Most instances listed; the worst are chosen.
  private static let mostInstances = 20

  init(_ merged: MergedReport) { self.merged = merged }

  func write(to html: inout HTMLWriter) {
    writeNodes(to: &html)
    writeBudgets(to: &html)
    writeLinks(to: &html)
    if merged.runs.count > 1 { writeInstances(to: &html) }
  }

  private func count(_ value: Int) -> String { value == 0 ? "" : "\(value)" }
  private func time(_ value: Nanoseconds?) -> String { (value ?? 0) == 0 ? "" : Figures.duration(value ?? 0) }

  private func writeNodes(to html: inout HTMLWriter) {
    let places = merged.nodes.map { Charts.places(of: $0.callTimes) }
    let range = (places.map(\.lowerBound).min() ?? 0)...(places.map(\.upperBound).max() ?? 1)
    let busiest = merged.nodes.map(\.busy).max() ?? 0
    html.section("Nodes", "Number and duration of calls.") { html in
      html.table(
        [
          ("node", false), ("type", false), ("calls", true), ("in", true), ("out", true), ("CPU", true),
          ("call times", false), ("median", true), ("p99", true), ("worst", true), ("waits", true),
          ("restarts", true),
        ],
        rows: merged.nodes.map { node in
          let share = 100 * Double(node.busy) / Double(max(1, busiest))
          let cpu = Figures.number(100 * merged.processorShare(node.busy), decimals: 2)
          return [
            .name(node.name), .text(node.type), .text(count(node.activations)), .text(count(node.packetsIn)),
            .text(count(node.packetsOut)),
            .markup(
              "\(cpu) %<span class=\"r-share\"><i style=\"width:\(Figures.number(share))%\"></i></span>"),
            .markup(
              Charts.histogram(
                node.callTimes, range, limit: Nanoseconds(node.budget) * 1_000, class: "r-spark")),
            .text(time(node.callTimes.quantile(0.5))), .text(time(node.callTimes.quantile(0.99))),
            .text(time(node.worst)), .text(count(node.blocked + node.starved)), .bad(count(node.restarts)),
          ]
        })
    }
  }

  private func writeBudgets(to html: inout HTMLWriter) {
    var rows: [[HTMLWriter.Cell]] = []
    for node in merged.nodes {
      func share(_ misses: Int) -> String {
        "\(Figures.number(100 * Double(misses) / Double(max(1, node.activations)), decimals: 2)) %"
      }
      if node.overBudget > 0 {
        rows.append([
          .name(node.name), .text("call time"), .text(time(Nanoseconds(node.budget) * 1_000)),
          .text(time(node.worst)), .bad("\(node.overBudget)"), .text(share(node.overBudget)),
        ])
      }
      if let maxAge = node.maxAge {
        rows.append([
          .name(node.name), .text("packet age"), .text(time(maxAge)), .text(time(node.worstAge)),
          .bad(count(node.overAge)), .text(node.overAge > 0 ? share(node.overAge) : "met"),
        ])
      }
    }
    guard !rows.isEmpty else { return }
    html.section("Budgets", "Limits, and how often they were exceeded.") { html in
      html.table(
        [
          ("node", false), ("limit on", false), ("budget", true), ("worst", true), ("missed", true),
          ("of calls", true),
        ], rows: rows)
    }
  }

  private func writeLinks(to html: inout HTMLWriter) {
    guard !merged.links.isEmpty else { return }
    html.section("Links", "Packets carried and dropped.") { html in
      if merged.dropped > 0 { writeReasons(to: &html) }
      html.table(
        [
          ("link", false), ("format", false), ("packets", true), ("per second", true), ("most queued", true),
          ("when full", false), ("oldest", true), ("newest", true), ("stale", true), ("shed", true),
          ("discarded", true), ("", false),
        ],
        rows: merged.links.map { link in
          [
            .name(link.name), .text(link.format.description), .text(count(link.pushed)),
            .text(Figures.number(merged.rate(link.pushed))), .text("\(link.highWater) of \(link.limit)"),
            .text(link.policy.rawValue), .bad(count(link.droppedOldest)), .bad(count(link.droppedNewest)),
            .text(count(link.droppedStale)), .text(count(link.droppedShed)), .text(count(link.discarded)),
            .markup(merged.dropped > 0 ? bar(link) : ""),
          ]
        })
    }
  }

  private func writeReasons(to html: inout HTMLWriter) {
    html.element("p", class: "r-key") { html in
      for (name, label) in [
        ("oldest", "oldest dropped when full"), ("newest", "newest dropped when full"),
        ("stale", "stale after an interruption"), ("shed", "dropped to shed load"),
      ] {
        html.raw("<span><i class=\"r-dot r-\(name)\"></i>\(label)</span>")
      }
    }
  }

  /// The dropped packets by reason, as shares of all packets.
  private func bar(_ link: LinkReport) -> String {
    // Stale and shed packets were popped from the link before they were dropped.
    let all = Double(max(1, link.popped + link.droppedOldest + link.droppedNewest))
    let parts = [
      ("oldest", link.droppedOldest), ("newest", link.droppedNewest), ("stale", link.droppedStale),
      ("shed", link.droppedShed),
    ]
    .filter { $0.1 > 0 }.map { name, count in
      "<i class=\"r-\(name)\" style=\"width:\(Figures.number(max(2, 100 * Double(count) / all)))%\"></i>"
    }
    return "<div class=\"r-stack\">\(parts.joined())</div>"
  }

  // MARK: Instances

  /// The results by which instances are sorted.
  private struct Instance {
    let report: RunReport
    let dropped: Int
    let overBudget: Int
    let worst: Nanoseconds
    let worstAge: Nanoseconds
    let age99: Nanoseconds

    init(_ report: RunReport) {
      self.report = report
      dropped = report.links.reduce(0) { $0 + $1.dropped }
      overBudget = report.nodes.reduce(0) { $0 + $1.overBudget }
      worst = report.nodes.map(\.worst).max() ?? 0
      worstAge = report.nodes.compactMap(\.worstAge).max() ?? 0
      age99 = report.nodes.compactMap { $0.ages?.quantile(0.99) }.max() ?? 0
    }

    func isWorse(than other: Instance) -> Bool {
      if (report.failure != nil) != (other.report.failure != nil) { return report.failure != nil }
      return (dropped, worstAge, overBudget, worst)
        > (other.dropped, other.worstAge, other.overBudget, other.worst)
    }
  }

  private func writeInstances(to html: inout HTMLWriter) {
    let instances = merged.runs.map { Instance($0.report) }.sorted { $0.isWorse(than: $1) }
    let shown = instances.prefix(Self.mostInstances)
    html.section(
      "Instances",
      shown.count < instances.count
        ? "The worst \(shown.count) of \(instances.count). Sorted by failure, dropped packets and packet age."
        : "Sorted by failure, dropped packets and packet age."
    ) { html in
      html.table(
        [
          ("instance", false), ("ended", false), ("time", true), ("delivered", true), ("dropped", true),
          ("p99 age", true), ("oldest", true), ("over budget", true), ("worst call", true),
        ],
        rows: shown.map { instance in
          let report = instance.report
          let delivered = report.nodes.filter(\.isSink).reduce(0) { $0 + $1.packetsIn }
          return [
            .name(report.name),
            report.failure.map { .bad("failed: \($0.node)") } ?? .text(report.phase.rawValue),
            .text(time(report.duration / 1_000_000 * 1_000_000)), .text("\(delivered)"),
            .bad(count(instance.dropped)), .text(time(instance.age99)), .text(time(instance.worstAge)),
            .text(count(instance.overBudget)), .text(time(instance.worst)),
          ]
        })
    }
  }
}
