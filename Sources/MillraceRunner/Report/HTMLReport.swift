internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph

/// The report of runs as one self-contained HTML page, without network access or scripts.
struct HTMLReport {
  /// A graph with all its runs.
  struct Graph {
    var merged: MergedReport
    /// The sound of the first run.
    var strips: [WaveRecorder.Strip]
    var turns: [Turn]
  }

  let graphs: [Graph]

  /// The page.
  func page() -> String {
    var html = HTMLWriter()
    let title = graphs.map(\.merged.title).joined(separator: " + ")
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
    html.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n")
    html.element("title", "\(title) · Millrace")
    html.raw("<style>\n\(ReportStyle.sheet)\n</style>\n</head>\n<body>\n")
    for graph in graphs { html.element("div", class: "r-graph") { write(graph, to: &$0) } }
    html.element("footer") { html in
      html.element(
        "p",
        "Call times are measured in the node; ages are measured from capture. This page contains no values from the environment and nothing that was said."
      )
    }
    html.raw("</body>\n</html>\n")
    return html.text
  }

  private func write(_ graph: Graph, to html: inout HTMLWriter) {
    let merged = graph.merged
    html.element("header") { html in
      html.element("div", class: "r-head") { html in
        html.element("h1", merged.title)
        let failed = merged.failures.count
        html.element(
          "span",
          failed == 0
            ? "done" : merged.runs.count == 1 ? "failed" : "\(failed) of \(merged.runs.count) failed",
          class: "r-pill \(failed == 0 ? "r-pill-good" : "r-pill-bad")")
      }
      html.element("p", Self.subtitle(merged), class: "r-sub")
      writeTiles(graph, to: &html)
    }
    html.element("main") { html in
      writeOffenders(merged, to: &html)
      writeDrawing(merged, to: &html)
      TurnSection(turns: graph.turns).write(to: &html)
      WaveSection(strips: graph.strips, ofSeveral: merged.runs.count > 1).write(to: &html)
      writeAges(merged, to: &html)
      ReportTables(merged).write(to: &html)
    }
  }

  private static func subtitle(_ merged: MergedReport) -> String {
    var parts = [Figures.counted(merged.nodes.count, "node"), Figures.counted(merged.links.count, "link")]
    if merged.runs.count > 1 { parts.insert("\(merged.runs.count) instances", at: 0) }
    parts.append("\(merged.plan.clock.rawValue) clock")
    return parts.joined(separator: " · ")
  }

  // MARK: Overview

  private func writeTiles(_ graph: Graph, to html: inout HTMLWriter) {
    let merged = graph.merged
    html.element("div", class: "r-tiles") { html in
      let time = merged.duration / 1_000_000 * 1_000_000
      let speed = Figures.number(Double(merged.duration) / Double(max(1, merged.wall)), decimals: 0)
      tile(
        Figures.duration(time), "graph time", merged.isVirtual ? "\(speed) × real time" : "", to: &html)
      tile(
        "\(merged.delivered)", "packets delivered",
        "\(Figures.number(merged.rate(merged.delivered))) per second"
          + (merged.runs.count > 1 ? " and instance" : ""), to: &html)
      tile("\(merged.dropped)", "dropped", "", isBad: merged.dropped > 0, to: &html)
      tile(
        "\(Figures.number(100 * merged.processorShare(merged.busy), decimals: 2)) %", "of one CPU", "",
        to: &html)
      if let worst = merged.nodes.max(by: { $0.worst < $1.worst }) {
        tile(Figures.duration(worst.worst), "worst call", worst.name, to: &html)
      }
      tile("\(merged.overBudget)", "calls over budget", "", to: &html)
      if let oldest = merged.nodes.filter({ $0.ages != nil }).max(by: {
        ($0.worstAge ?? 0) < ($1.worstAge ?? 0)
      }),
        let age = oldest.worstAge
      {
        tile(
          Figures.duration(age), "oldest packet at a sink", oldest.name, isBad: oldest.overAge > 0, to: &html)
      }
      let answers = graph.turns.compactMap(\.answerTime).sorted()
      if !answers.isEmpty {
        tile(
          Figures.duration(answers[answers.count / 2]), "median answer time", "\(answers.count) answered",
          to: &html)
      }
      if let first = merged.runs.compactMap(\.report.timeToFirstPacket).max() {
        tile(Figures.duration(first / 1_000 * 1_000), "to first packet", "", to: &html)
      }
      tile(Figures.bytes(merged.sum(\.poolBytes)), "media memory", "", to: &html)
    }
  }

  private func tile(
    _ figure: String, _ label: String, _ detail: String, isBad: Bool = false, to html: inout HTMLWriter
  ) {
    html.element("div", class: isBad ? "r-tile r-tile-bad" : "r-tile") { html in
      html.element("b", figure)
      html.element("span", label)
      if !detail.isEmpty { html.element("em", detail) }
    }
  }

  // MARK: Sections

  /// Most offenders listed.
  private static let mostOffenders = 12

  private func writeOffenders(_ merged: MergedReport, to html: inout HTMLWriter) {
    let items = Offenders(merged).items
    html.section("Problems") { html in
      html.element("ul", class: "r-list") { html in
        if items.isEmpty {
          html.element("li", class: "r-fine") { html in
            html.element("b", "None.")
            html.raw(" No packet was dropped, no call exceeded its budget, and no node failed.")
          }
        }
        for item in items.prefix(Self.mostOffenders) {
          html.element("li", class: item.isSerious ? "r-serious" : "") { html in
            html.element("b", item.subject)
            html.raw(SVGWriter.escaped(" " + item.text))
          }
        }
      }
      if items.count > Self.mostOffenders {
        html.element("p", "and \(items.count - Self.mostOffenders) more", class: "r-sub")
      }
    }
  }

  /// A wider drawing would be unreadable when scaled to the page.
  private static let widestDrawing = 1_700.0

  private func writeDrawing(_ merged: MergedReport, to html: inout HTMLWriter) {
    var plan = merged.plan
    // Without the instance number.
    plan.name = merged.title
    var notes = ReportNotes.notes(of: merged)
    notes.subtitle = Self.subtitle(merged)
    let drawing = GraphDrawing(plan, notes: notes)
    html.section("Graph", "Packets per second of graph time, and the CPU share of each node.") {
      html in
      html.element("div", class: "r-drawing r-wide") { $0.raw(drawing.svg(widest: Self.widestDrawing)) }
      html.element("div", class: "r-drawing r-narrow") { $0.raw(drawing.svg(direction: .down)) }
    }
  }

  private func writeAges(_ merged: MergedReport, to html: inout HTMLWriter) {
    let ends = merged.nodes.filter { ($0.ages?.count ?? 0) > 0 }
    guard !ends.isEmpty else { return }
    html.section(
      "Packet age",
      "Age of packets at the sinks, measured from capture. The scale is logarithmic, with eight bars per octave."
    ) { html in
      html.element("div", class: "r-charts") { html in
        for node in ends { Self.writeAges(node, to: &html) }
      }
    }
  }

  private static func writeAges(_ node: NodeReport, to html: inout HTMLWriter) {
    guard let ages = node.ages else { return }
    let places = Charts.places(of: ages, and: node.maxAge)
    html.element("div", class: "r-card") { html in
      html.element("div", class: "r-between") { html in
        html.element("h3", node.name)
        html.element("span", "\(ages.count) calls", class: "r-key")
      }
      html.raw(Charts.histogram(ages, places, limit: node.maxAge, class: "r-chart"))
      html.element("div", class: "r-axis") { html in
        html.element("span", Figures.duration(ages.buckets.first?.range.lowerBound ?? 0))
        if let maxAge = node.maxAge { html.element("span", "limit \(Figures.duration(maxAge))") }
        html.element("span", Figures.duration(ages.largest))
      }
      html.element("div", class: "r-key") { html in
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
          html.element("span") { html in
            html.raw("\(name) ")
            html.element("b", Figures.duration(ages.quantile(share) ?? 0))
          }
        }
        html.element("span") { html in
          html.raw("max ")
          html.element("b", Figures.duration(ages.largest))
        }
      }
    }
  }
}
