internal import MillraceCore

extension GraphDrawing {
  /// The graph as a Mermaid flowchart, which code hosts render in Markdown.
  public func mermaid() -> String {
    var lines = ["---", "title: \(Self.yamlQuoted(plan.name))", "---", "flowchart LR"]
    for (index, node) in plan.nodes.enumerated() {
      var rows = ["<b>\(Self.mermaidEscaped(node.name))</b>", Self.mermaidEscaped(node.contract.type)]
      rows += parameters(of: node).map {
        Self.mermaidEscaped($0.value.isEmpty ? $0.name : "\($0.name): \($0.value)")
      }
      rows += (notes.nodes[node.name] ?? []).map(Self.mermaidEscaped)
      lines.append("  n\(index)[\"\(rows.joined(separator: "<br/>"))\"]:::\(node.lane.rawValue)")
    }
    for (index, link) in plan.links.enumerated() {
      var rows = self.lines(ofLink: index)
      let ends = (
        plan.nodes[link.from.node].outputs[link.from.port].name,
        plan.nodes[link.to.node].inputs[link.to.port].name
      )
      if ends != ("out", "in") { rows.insert("\(ends.0) → \(ends.1)", at: 0) }
      let label = rows.map(Self.mermaidEscaped).joined(separator: "<br/>")
      let arrow = feedback.contains(index) ? "-. \"\(label)\" .->" : "-- \"\(label)\" -->"
      lines.append("  n\(link.from.node) \(arrow) n\(link.to.node)")
    }
    for lane in Lane.allCases where plan.nodes.contains(where: { $0.lane == lane }) {
      lines.append("  classDef \(lane.rawValue) stroke:\(SVGStyle.colour(of: lane).light),stroke-width:2px")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Text of a quoted Mermaid label, with the characters that are markup in Mermaid or HTML as entities.
  private static func mermaidEscaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "#", "&", "<", ">", "`", ";", "\\": result += "#\(scalar.value);"
      case "\n", "\r": result += " "
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func yamlQuoted(_ text: String) -> String {
    "\"\(text.map { "\"\\".contains($0) ? "\\\($0)" : $0.isNewline ? " " : String($0) }.joined())\""
  }
}
