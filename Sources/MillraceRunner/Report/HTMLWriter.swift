internal import MillraceGraph

/// Text of an HTML page: elements in order, everything that is not markup escaped.
struct HTMLWriter {
  private(set) var text = ""

  /// Markup as it is.
  mutating func raw(_ markup: String) { text += markup }

  /// An element with text in it.
  mutating func element(_ name: String, _ content: String, class classes: String = "") {
    open(name, classes)
    text += SVGWriter.escaped(content)
    text += "</\(name)>"
  }

  /// An element with elements in it. `attributes` are markup.
  mutating func element(
    _ name: String, class classes: String = "", attributes: String = "", _ body: (inout HTMLWriter) -> Void
  ) {
    open(name, classes, attributes)
    body(&self)
    text += "</\(name)>\n"
  }

  /// A section of the page with its heading and, under it, a line that says what is seen.
  mutating func section(_ heading: String, _ explanation: String = "", _ body: (inout HTMLWriter) -> Void) {
    element("section") { html in
      html.element("h2", heading)
      if !explanation.isEmpty { html.element("p", explanation, class: "r-sub") }
      body(&html)
    }
  }

  /// A table in a box that scrolls by itself, so that the page does not.
  /// - Parameter columns: headings; those of figures stand to the right.
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

  /// What stands in one place of a table.
  enum Cell {
    case text(String)
    /// The name of a node or link.
    case name(String)
    /// A figure that is not as it should be; plain when it is nothing.
    case bad(String)
    case markup(String)
  }

  private mutating func cell(_ cell: Cell, isFigure: Bool) {
    let figure = isFigure ? "r-figure" : ""
    switch cell {
    case .text(let words): element("td", words, class: figure)
    case .name(let words): element("td", words, class: "r-name")
    case .bad(let words): element("td", words, class: words.isEmpty ? figure : "\(figure) r-bad")
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
