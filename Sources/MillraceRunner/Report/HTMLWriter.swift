internal import MillraceGraph

/// Writes HTML. Everything except markup is escaped.
struct HTMLWriter {
  private(set) var text = ""

  /// Writes markup without escaping.
  mutating func raw(_ markup: String) { text += markup }

  /// Writes an element that contains text.
  mutating func element(_ name: String, _ content: String, class classes: String = "") {
    open(name, classes)
    text += SVGWriter.escaped(content)
    text += "</\(name)>"
  }

  /// Writes an element that contains elements. `attributes` is not escaped.
  mutating func element(
    _ name: String, class classes: String = "", attributes: String = "", _ body: (inout HTMLWriter) -> Void
  ) {
    open(name, classes, attributes)
    body(&self)
    text += "</\(name)>\n"
  }

  /// Writes a section with a heading and an explanation.
  mutating func section(_ heading: String, _ explanation: String = "", _ body: (inout HTMLWriter) -> Void) {
    element("section") { html in
      html.element("h2", heading)
      if !explanation.isEmpty { html.element("p", explanation, class: "r-sub") }
      body(&html)
    }
  }

  /// Writes a table in a box that scrolls horizontally, so that the page does not.
  /// - Parameter columns: the headings; columns of figures are right-aligned.
  mutating func table(_ columns: [(heading: String, isFigure: Bool)], rows: [[Cell]]) {
    element("div", class: "r-scroll") { html in
      html.element("table") { html in
        html.element("thead") { html in
          html.element("tr") { html in
            for column in columns {
              html.element("th", column.heading, class: column.isFigure ? "r-figure" : "")
            }
          }
        }
        html.element("tbody") { html in
          for row in rows {
            html.element("tr") { html in
              for (column, cell) in zip(columns, row) { html.cell(cell, isFigure: column.isFigure) }
            }
          }
        }
      }
    }
  }

  /// The content of a table cell.
  enum Cell {
    case text(String)
    /// The name of a node or link.
    case name(String)
    /// A figure that indicates a problem, highlighted unless empty.
    case bad(String)
    case markup(String)
  }

  private mutating func cell(_ cell: Cell, isFigure: Bool) {
    let figure = isFigure ? "r-figure" : ""
    switch cell {
    case .text(let text): element("td", text, class: figure)
    case .name(let text): element("td", text, class: "r-name")
    case .bad(let text): element("td", text, class: text.isEmpty ? figure : "\(figure) r-bad")
    case .markup(let markup): element("td", class: figure) { $0.raw(markup) }
    }
  }

  private mutating func open(_ name: String, _ classes: String, _ attributes: String = "") {
    text += "<\(name)"
    if !classes.isEmpty { text += " class=\"\(classes)\"" }
    if !attributes.isEmpty { text += " \(attributes)" }
    text += ">"
  }
}
