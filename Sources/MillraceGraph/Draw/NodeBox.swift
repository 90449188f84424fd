internal import MillraceCore

/// One node of the drawing: the content and size of its box, and the positions of its ports.
///
/// *Across* is perpendicular to the flow: down the page when packets flow right, to the right when they flow down.
struct NodeBox {
  /// A port on the edge of the box.
  struct Pin {
    let name: String
    /// The kind of its format; nil when it has none.
    let kind: Format.Kind?
    let isLinked: Bool
    /// The position on the edge, across, from the start of the box.
    var offset: Double
    /// The label of the link that ends here (inputs only).
    var label: [String] = []
    /// The index of the port in the plan.
    let port: Int
  }

  let node: GraphPlan.Node
  let parameters: [(name: String, value: String)]
  let notes: [String]
  var inputs: [Pin] = []
  var outputs: [Pin] = []
  /// The size on the page.
  var width = 0.0
  var height = 0.0
  /// The size of the node across, including labels that extend beyond its box.
  var extent = 0.0
  /// The top of the name, from the top of the box.
  var headTop = 0.0
  /// The top of the first row of ports when they are on the sides.
  var portsTop = 0.0
  /// The top of the parameters, from the top of the box.
  var bodyTop = 0.0
  /// The left edge of the parameters' values, from the left of the box.
  var valueLeft = 0.0

  // In pixels. Texts are readable at half scale.
  static let nameSize = 14.0
  static let typeSize = 11.0
  static let bodySize = 11.0
  static let portSize = 10.5
  static let labelSize = 11.0
  static let lineHeight = 15.0
  static let headHeight = 44.0
  static let padding = 12.0
  static let minWidth = 136.0
  private static let portRow = 20.0

  /// The width of a link's label.
  static func labelWidth(_ lines: [String]) -> Double {
    lines.map { TextWidth.of($0, size: labelSize) }.max() ?? 0
  }

  init(_ index: Int, in drawing: GraphDrawing, flowsRight: Bool) {
    node = drawing.plan.nodes[index]
    parameters = drawing.parameters(of: node)
    notes = drawing.notes.nodes[node.name] ?? []
    for (port, input) in node.inputs.enumerated() {
      inputs.append(
        Pin(name: input.name, kind: input.shape?.format.kind, isLinked: input.isLinked, offset: 0, port: port)
      )
    }
    for (port, output) in node.outputs.enumerated()
    where output.isLinked || output.name != NodeContract.eventsPort {
      outputs.append(
        Pin(
          name: output.name, kind: output.shape?.format.kind, isLinked: output.isLinked, offset: 0, port: port
        ))
    }
    for (link, end) in drawing.plan.links.enumerated() where end.to.node == index {
      guard let pin = inputs.firstIndex(where: { $0.port == end.to.port }) else { continue }
      inputs[pin].label = drawing.lines(ofLink: link)
    }
    if flowsRight { layOutFlowingRight() } else { layOutFlowingDown() }
  }

  /// The width of the texts, without the ports.
  private mutating func textWidth() -> Double {
    let pill = TextWidth.of(node.lane.rawValue, size: 10) + 16
    let name = TextWidth.of(node.name, size: Self.nameSize, bold: true) + 10 + pill
    let type = TextWidth.of(node.contract.type, size: Self.typeSize)
    valueLeft =
      Self.padding + 12
      + (parameters.map { TextWidth.of($0.name, size: Self.bodySize) }.max() ?? 0)
    let values = parameters.map { valueLeft + TextWidth.of($0.value, size: Self.bodySize) }.max() ?? 0
    let remarks = notes.map { TextWidth.of($0, size: Self.bodySize) }.max() ?? 0
    let widest = max(name, type, remarks) + 2 * Self.padding
    return max(widest, values + Self.padding, Self.minWidth).rounded(.up)
  }

  /// The next even integer: its half is an integer too, which keeps lines between ports straight.
  private static func even(_ value: Double) -> Double { (value / 2).rounded(.up) * 2 }

  private var bodyHeight: Double {
    let rows = parameters.count + notes.count
    return rows == 0 ? 0 : Double(rows) * Self.lineHeight + 14
  }

  private mutating func layOutFlowingRight() {
    let names =
      (inputs.map { TextWidth.of($0.name, size: Self.portSize) }.max() ?? 0)
      + (outputs.map { TextWidth.of($0.name, size: Self.portSize) }.max() ?? 0)
    width = Self.even(max(textWidth(), names + 50))
    portsTop = Self.headHeight + 8
    let mostLines = inputs.map(\.label.count).max() ?? 0
    // The first line of a label is above its link, the others are below; labels of adjacent links must not overlap.
    let inputRow = inputs.count > 1 ? max(Self.portRow, 14 * Double(mostLines) + 14) : Self.portRow
    for index in inputs.indices {
      inputs[index].offset = portsTop + Self.portRow / 2 + Double(index) * inputRow
    }
    for index in outputs.indices {
      outputs[index].offset = portsTop + Self.portRow / 2 + Double(index) * Self.portRow
    }
    let lowest = max(inputs.last?.offset ?? 0, outputs.last?.offset ?? 0)
    bodyTop = max(lowest + Self.portRow / 2, Self.headHeight) + 6
    height = bodyTop + bodyHeight
    let labelBottom = (inputs.last?.offset ?? 0) + 14 * Double(max(0, mostLines - 1)) + 4
    extent = max(height, labelBottom)
  }

  private mutating func layOutFlowingDown() {
    let inputRow = (inputs.map { Self.labelWidth($0.label) }.max() ?? 0) + 24
    let inputName = (inputs.map { TextWidth.of($0.name, size: Self.portSize) }.max() ?? 0) + 14
    let outputRow = Self.even(
      max(30, (outputs.map { TextWidth.of($0.name, size: Self.portSize) }.max() ?? 0) + 14))
    let inputPitch = Self.even(max(inputRow, inputName))
    let inputsWidth = Double(max(0, inputs.count - 1)) * inputPitch + inputName + 8
    width = Self.even(max(textWidth(), inputsWidth, Double(outputs.count) * outputRow + 8))
    for index in inputs.indices {
      inputs[index].offset = width / 2 + (Double(index) - Double(inputs.count - 1) / 2) * inputPitch
    }
    for index in outputs.indices {
      outputs[index].offset = width / 2 + (Double(index) - Double(outputs.count - 1) / 2) * outputRow
    }
    headTop = inputs.isEmpty ? 0 : 14
    bodyTop = headTop + Self.headHeight
    height = bodyTop + bodyHeight + (outputs.isEmpty ? 4 : 18)
    let labelRight = inputs.last.map { $0.offset + 10 + Self.labelWidth($0.label) } ?? 0
    extent = max(width, labelRight)
  }
}
