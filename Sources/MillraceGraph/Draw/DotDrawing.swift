internal import MillraceCore

extension GraphDrawing {
  /// The graph in the DOT language of Graphviz.
  public func dot() -> String {
    var lines = [
      "digraph \(Self.dotQuoted(plan.name)) {",
      "  graph [rankdir=LR, fontname=\"Helvetica\", labelloc=t, label=\(Self.dotQuoted("\(plan.name)\n\(subtitle)"))];",
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11, fillcolor=\"#ffffff\"];",
      "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.7];",
    ]
    for (index, node) in plan.nodes.enumerated() {
      var rows = [node.name, node.contract.type]
      rows += parameters(of: node).map { $0.value.isEmpty ? $0.name : "\($0.name): \($0.value)" }
      rows += notes.nodes[node.name] ?? []
      let colour = SVGStyle.colour(of: node.lane).light
      lines.append(
        "  n\(index) [label=\(Self.dotQuoted(rows.joined(separator: "\n"))), color=\"\(colour)\", tooltip=\(Self.dotQuoted(node.contract.summary))];"
      )
    }
    for (index, link) in plan.links.enumerated() {
      let label = Self.dotQuoted(self.lines(ofLink: index).joined(separator: "\n"))
      let tail = Self.dotQuoted(plan.nodes[link.from.node].outputs[link.from.port].name)
      let head = Self.dotQuoted(plan.nodes[link.to.node].inputs[link.to.port].name)
      let style = feedback.contains(index) ? ", style=dashed, constraint=false" : ""
      lines.append(
        "  n\(link.from.node) -> n\(link.to.node) [label=\(label), taillabel=\(tail), headlabel=\(head), color=\"\(SVGStyle.Family(link.shape.format.kind).colour.light)\"\(style)];"
      )
    }
    lines.append("}")
    return lines.joined(separator: "\n") + "\n"
  }

  /// A string of the DOT language: quotes and backslashes escaped, line breaks as `\n`.
  private static func dotQuoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
