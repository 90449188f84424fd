internal import MillraceCore

extension GraphDrawing {
  /// The width of a page in pixels.
  public static let pageWidth = 1280.0

  /// The graph as an SVG document for light and dark pages.
  ///
  /// Every node is a group with `data-node`, every link a group with `data-link`, for scripts of a page. Takes some milliseconds for
  /// tens of nodes.
  /// - Parameters:
  ///   - direction: the direction of the flow.
  ///   - widest: the width in pixels up to which the automatic direction is right.
  public func svg(direction: Direction = .automatic, widest: Double = pageWidth) -> String {
    switch direction {
    case .right: return SVGPage(self, flowsRight: true).document()
    case .down: return SVGPage(self, flowsRight: false).document()
    case .automatic:
      let page = SVGPage(self, flowsRight: true)
      if page.width <= widest { return page.document() }
      let other = SVGPage(self, flowsRight: false)
      return (other.width < page.width ? other : page).document()
    }
  }
}

/// One drawing on its page.
private struct SVGPage {
  let drawing: GraphDrawing
  let flowsRight: Bool
  let boxes: [NodeBox]
  let layers: DrawingLayers
  let routes: DrawingRoutes
  let legend: [LegendItem]

  enum LegendItem {
    case lane(Lane)
    case family(SVGStyle.Family)
    case feedback
    case unlinked
  }

  private static let margin = 28.0
  private static let head = 92.0
  private static let foot = 44.0
  private static let portRadius = 4.5
  private static let arrowLength = 7.0

  init(_ drawing: GraphDrawing, flowsRight: Bool) {
    self.drawing = drawing
    self.flowsRight = flowsRight
    var boxes = drawing.plan.nodes.indices.map { NodeBox($0, in: drawing, flowsRight: flowsRight) }
    var layers = DrawingLayers(drawing.plan, boxes: boxes, feedback: drawing.feedback)
    if flowsRight {
      // Boxes of a column have the same width, so that their ports line up.
      for layer in layers.order {
        let nodes = layer.compactMap { layers.items[$0].node }
        let width = nodes.map { boxes[$0].width }.max() ?? 0
        for node in nodes { boxes[node].width = width }
      }
    }
    DrawingPlacement.place(&layers)
    self.boxes = boxes
    self.layers = layers
    routes = DrawingRoutes(drawing, layers: layers, boxes: boxes, flowsRight: flowsRight)
    legend = Self.legend(of: drawing, boxes: boxes)
  }

  private static func legend(of drawing: GraphDrawing, boxes: [NodeBox]) -> [LegendItem] {
    let lanes = Set(drawing.plan.nodes.map(\.lane))
    let families = Set(drawing.plan.links.map { SVGStyle.Family($0.shape.format.kind) })
    var items = Lane.allCases.filter(lanes.contains).map(LegendItem.lane)
    items += SVGStyle.Family.allCases.filter(families.contains).map(LegendItem.family)
    if !drawing.feedback.isEmpty { items.append(.feedback) }
    if boxes.contains(where: { ($0.inputs + $0.outputs).contains { !$0.isLinked } }) {
      items.append(.unlinked)
    }
    return items
  }

  // MARK: The page

  private var drawn: (width: Double, height: Double) {
    flowsRight ? (routes.length, routes.breadth) : (routes.breadth, routes.length)
  }

  private var inside: Double {
    max(
      drawn.width, TextWidth.of(drawing.plan.name, size: 20, bold: true),
      TextWidth.of(drawing.subtitle, size: 11), legend.map(\.width).reduce(0, +))
  }

  var width: Double { (inside + 2 * Self.margin).rounded(.up) }
  var height: Double { (drawn.height + Self.head + Self.foot + 12).rounded(.up) }

  /// Converts flow coordinates to those of the page.
  private func place(_ point: FlowPoint) -> (x: Double, y: Double) {
    let left = Self.margin + (inside - drawn.width) / 2
    return flowsRight
      ? (left + point.along, Self.head + point.across) : (left + point.across, Self.head + point.along)
  }

  private func text(_ point: FlowPoint) -> String {
    let (x, y) = place(point)
    return "\(SVGWriter.number(x)) \(SVGWriter.number(y))"
  }

  func document() -> String {
    var svg = SVGWriter()
    let (width, height) = (SVGWriter.number(width), SVGWriter.number(height))
    svg.line(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" viewBox=\"0 0 \(width) \(height)\" role=\"img\">"
    )
    svg.line("<title>\(SVGWriter.escaped(drawing.plan.name))</title>")
    svg.line("<desc>\(SVGWriter.escaped(drawing.subtitle))</desc>")
    svg.line("<style>\n\(SVGStyle.sheet)\n</style>")
    svg.rectangle("paper", x: 0, y: 0, width: self.width, height: self.height, radius: 14)
    svg.text(drawing.plan.name, "title", x: Self.margin, y: 42)
    svg.text(drawing.subtitle, "mute", x: Self.margin, y: 61)
    for route in routes.routes { drawRoute(route, into: &svg) }
    for node in boxes.indices { drawNode(node, into: &svg) }
    for route in routes.routes { drawLabel(route, into: &svg) }
    drawLegend(into: &svg)
    svg.line("</svg>")
    return svg.text
  }

  // MARK: Links

  private func drawRoute(_ route: LinkRoute, into svg: inout SVGWriter) {
    let link = drawing.plan.links[route.link]
    let family = SVGStyle.Family(link.shape.format.kind).rawValue
    var data = "M\(text(route.start))"
    for step in route.steps {
      switch step {
      case .line(let to): data += "L\(text(to))"
      case .curve(let first, let second, let to): data += "C\(text(first)) \(text(second)) \(text(to))"
      case .corner(let corner, let to): data += "Q\(text(corner)) \(text(to))"
      }
    }
    svg.line("<g data-link=\"\(SVGWriter.escaped(drawing.plan.describe(link)))\">")
    svg.line("<title>\(SVGWriter.escaped(drawing.plan.describe(link)))</title>")
    svg.path("route route-\(family)\(route.isFeedback ? " feedback" : "")", data)
    let tip = route.end.along - Self.portRadius
    let back = FlowPoint(along: tip - Self.arrowLength, across: route.end.across - 4)
    let other = FlowPoint(along: tip - Self.arrowLength, across: route.end.across + 4)
    let arrow = "M\(text(back))L\(text(FlowPoint(along: tip, across: route.end.across)))L\(text(other))Z"
    svg.path("dot-\(family)", arrow)
    svg.line("</g>")
  }

  private func drawLabel(_ route: LinkRoute, into svg: inout SVGWriter) {
    let lines = drawing.lines(ofLink: route.link)
    let (x, y) = place(route.end)
    let right = x - Self.portRadius - Self.arrowLength - 4
    for (index, line) in lines.enumerated() {
      let number = Double(index)
      if flowsRight {
        let base = index == 0 ? y - 6 : y + 14 * number
        svg.text(line, "label number end", x: right, y: base)
      } else {
        let base = y - 14 - 14 * (Double(lines.count) - 1 - number)
        svg.text(line, "label number", x: x + 9, y: base)
      }
    }
  }

  // MARK: Nodes

  private func drawNode(_ index: Int, into svg: inout SVGWriter) {
    let box = boxes[index]
    let item = layers.items[index]
    let (x, y) = place(FlowPoint(along: routes.layerStart[item.layer], across: item.start))
    let lane = box.node.lane.rawValue
    svg.line("<g data-node=\"\(SVGWriter.escaped(box.node.name))\">")
    svg.line("<title>\(SVGWriter.escaped("\(box.node.contract.type): \(box.node.contract.summary)"))</title>")
    svg.rectangle("box", x: x, y: y, width: box.width, height: box.height, radius: 9)
    svg.path("lane-\(lane)", laneBar(x, y, box.height))
    svg.text(box.node.name, "name", x: x + NodeBox.padding, y: y + box.headTop + 22)
    svg.text(box.node.contract.type, "mute", x: x + NodeBox.padding, y: y + box.headTop + 38)
    let pill = TextWidth.of(lane, size: 10) + 14
    let pillLeft = x + box.width - pill - 9
    svg.rectangle(
      "lane-\(lane) tint", x: pillLeft, y: y + box.headTop + 9, width: pill, height: 17, radius: 8.5)
    svg.text(lane, "pill lane-\(lane)", x: pillLeft + pill / 2, y: y + box.headTop + 21)
    drawBody(box, x, y, into: &svg)
    drawPorts(box, x, y, into: &svg)
    svg.line("</g>")
  }

  /// The coloured left edge with its rounded corners.
  private func laneBar(_ x: Double, _ y: Double, _ height: Double) -> String {
    let n = SVGWriter.number
    return
      "M\(n(x + 9)) \(n(y))H\(n(x + 5))Q\(n(x)) \(n(y)) \(n(x)) \(n(y + 9))V\(n(y + height - 9))Q\(n(x)) \(n(y + height)) \(n(x + 5)) \(n(y + height))Q\(n(x + 4)) \(n(y + height)) \(n(x + 4)) \(n(y + height - 9))V\(n(y + 9))Q\(n(x + 4)) \(n(y + 1)) \(n(x + 9)) \(n(y))Z"
  }

  private func drawBody(_ box: NodeBox, _ x: Double, _ y: Double, into svg: inout SVGWriter) {
    guard !box.parameters.isEmpty || !box.notes.isEmpty else { return }
    let top = y + box.bodyTop
    let n = SVGWriter.number
    svg.path("rule", "M\(n(x + NodeBox.padding)) \(n(top))H\(n(x + box.width - NodeBox.padding))")
    var base = top + NodeBox.lineHeight + 3
    for parameter in box.parameters {
      svg.text(parameter.name, "mute", x: x + NodeBox.padding, y: base)
      if !parameter.value.isEmpty { svg.text(parameter.value, "value number", x: x + box.valueLeft, y: base) }
      base += NodeBox.lineHeight
    }
    for note in box.notes {
      svg.text(note, "value number", x: x + NodeBox.padding, y: base)
      base += NodeBox.lineHeight
    }
  }

  private func drawPorts(_ box: NodeBox, _ x: Double, _ y: Double, into svg: inout SVGWriter) {
    for pin in box.inputs {
      let (px, py) = flowsRight ? (x, y + pin.offset) : (x + pin.offset, y)
      drawDot(pin, px, py, into: &svg)
      if flowsRight {
        svg.text(pin.name, "small mute", x: px + 11, y: py + 3.5)
      } else {
        svg.text(pin.name, "small mute middle", x: px, y: py + 15)
      }
    }
    for pin in box.outputs {
      let (px, py) = flowsRight ? (x + box.width, y + pin.offset) : (x + pin.offset, y + box.height)
      drawDot(pin, px, py, into: &svg)
      if flowsRight {
        svg.text(pin.name, "small mute end", x: px - 11, y: py + 3.5)
      } else {
        svg.text(pin.name, "small mute middle", x: px, y: py - 9)
      }
    }
  }

  private func drawDot(_ pin: NodeBox.Pin, _ x: Double, _ y: Double, into svg: inout SVGWriter) {
    if pin.isLinked, let kind = pin.kind {
      svg.circle("port dot-\(SVGStyle.Family(kind).rawValue)", x: x, y: y, radius: Self.portRadius)
    } else {
      svg.circle("open", x: x, y: y, radius: Self.portRadius - 0.75)
    }
  }

  // MARK: Legend

  private func drawLegend(into svg: inout SVGWriter) {
    var x = Self.margin
    let y = height - 24
    for item in legend {
      switch item {
      case .lane(let lane):
        svg.rectangle("lane-\(lane.rawValue)", x: x, y: y - 9, width: 4, height: 12, radius: 2)
        svg.text(item.label, "mute", x: x + 10, y: y + 1)
      case .family(let family):
        svg.path("route route-\(family.rawValue)", "M\(SVGWriter.number(x)) \(SVGWriter.number(y - 3))h18")
        svg.text(item.label, "mute", x: x + 25, y: y + 1)
      case .feedback:
        svg.path("route route-event feedback", "M\(SVGWriter.number(x)) \(SVGWriter.number(y - 3))h22")
        svg.text(item.label, "mute", x: x + 29, y: y + 1)
      case .unlinked:
        svg.circle("open", x: x + 4, y: y - 3, radius: Self.portRadius - 0.75)
        svg.text(item.label, "mute", x: x + 14, y: y + 1)
      }
      x += item.width
    }
  }
}

extension SVGPage.LegendItem {
  var label: String {
    switch self {
    case .lane(let lane): "\(lane.rawValue) lane"
    case .family(let family): family.label
    case .feedback: "feedback"
    case .unlinked: "not linked"
    }
  }

  /// The width of the sign, the label and the space after it.
  var width: Double {
    let sign =
      switch self {
      case .lane: 10.0
      case .family: 25.0
      case .feedback: 29.0
      case .unlinked: 14.0
      }
    return sign + TextWidth.of(label, size: 11) + 22
  }
}
