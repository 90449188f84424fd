/// A point in flow coordinates: along the flow and across it.
struct FlowPoint {
  var along: Double
  var across: Double
}

/// One segment of a route.
enum RouteStep {
  case line(FlowPoint)
  case curve(FlowPoint, FlowPoint, FlowPoint)
  /// A rounded corner: a quadratic curve with the corner as its control point.
  case corner(FlowPoint, FlowPoint)
}

/// The route of one link.
struct LinkRoute {
  let link: Int
  let isFeedback: Bool
  var start: FlowPoint
  var steps: [RouteStep]
  /// The end, at the port of the input.
  var end: FlowPoint
}

/// The positions of layers and the routes of links, in flow coordinates.
struct DrawingRoutes {
  /// The start of each layer along the flow, and its depth.
  private(set) var layerStart: [Double] = []
  private(set) var layerDepth: [Double] = []
  private(set) var routes: [LinkRoute] = []
  /// The size of the whole drawing.
  private(set) var length = 0.0
  private(set) var breadth = 0.0

  private let layers: DrawingLayers
  /// Before each layer and after the last: space for bends, then space for labels on straight lines.
  private var bendZone: [Double]
  private var labelZone: [Double]

  // In pixels.
  private static let straightZone = 16.0
  private static let minBend = 40.0
  private static let maxBend = 120.0
  private static let channelGap = 16.0
  private static let cornerRadius = 10.0

  init(_ drawing: GraphDrawing, layers: DrawingLayers, boxes: [NodeBox], flowsRight: Bool) {
    self.layers = layers
    let count = layers.order.count
    bendZone = Array(repeating: 0, count: count + 1)
    labelZone = bendZone
    measure(drawing, boxes, flowsRight)
    var along = 0.0
    for layer in 0..<count {
      along += bendZone[layer] + labelZone[layer]
      layerStart.append(along)
      layerDepth.append(layers.order[layer].map { depth(of: $0, boxes, flowsRight) }.max() ?? 0)
      along += layerDepth[layer]
    }
    length = along + bendZone[count]
    breadth = layers.items.map { $0.start + $0.extent }.max() ?? 0
    routeForward(boxes, flowsRight)
    routeFeedback(drawing, boxes, flowsRight)
  }

  private func depth(of item: Int, _ boxes: [NodeBox], _ flowsRight: Bool) -> Double {
    guard let node = layers.items[item].node else { return 0 }
    return flowsRight ? boxes[node].width : boxes[node].height
  }

  private mutating func measure(_ drawing: GraphDrawing, _ boxes: [NodeBox], _ flowsRight: Bool) {
    for (node, box) in boxes.enumerated() {
      for pin in box.inputs where !pin.label.isEmpty {
        let room = flowsRight ? NodeBox.labelWidth(pin.label) + 22 : 14 * Double(pin.label.count) + 14
        labelZone[layers.layerOfNode[node]] = max(labelZone[layers.layerOfNode[node]], room)
      }
    }
    for segment in layers.segments {
      let drop = abs(
        layers.items[segment.from].start + segment.fromOffset - layers.items[segment.to].start
          - segment.toOffset)
      let room = drop < 1 ? Self.straightZone : min(max(0.35 * drop, Self.minBend), Self.maxBend)
      let gap = layers.items[segment.to].layer
      bendZone[gap] = max(bendZone[gap], room)
    }
    for link in drawing.feedback {
      let ends = drawing.plan.links[link]
      bendZone[layers.layerOfNode[ends.to.node]] += Self.channelGap
      bendZone[layers.layerOfNode[ends.from.node] + 1] += Self.channelGap
    }
  }

  // MARK: With the flow

  private mutating func routeForward(_ boxes: [NodeBox], _ flowsRight: Bool) {
    var route: LinkRoute?
    // The segments of one link are consecutive.
    for segment in layers.segments {
      let from = layers.items[segment.from]
      let to = layers.items[segment.to]
      let leaves = FlowPoint(
        along: layerStart[from.layer] + layerDepth[from.layer], across: from.start + segment.fromOffset)
      let arrives = FlowPoint(along: layerStart[to.layer], across: to.start + segment.toOffset)
      var current =
        if from.node != nil {
          LinkRoute(
            link: segment.link, isFeedback: false,
            start: FlowPoint(
              along: layerStart[from.layer] + depth(of: segment.from, boxes, flowsRight),
              across: leaves.across),
            steps: [], end: arrives)
        } else { route! }
      current.steps.append(.line(leaves))
      let bendEnd = FlowPoint(along: arrives.along - labelZone[to.layer], across: arrives.across)
      if abs(leaves.across - arrives.across) >= 0.5 {
        let middle = (leaves.along + bendEnd.along) / 2
        current.steps.append(
          .curve(
            FlowPoint(along: middle, across: leaves.across), FlowPoint(along: middle, across: bendEnd.across),
            bendEnd))
      }
      current.steps.append(.line(arrives))
      current.end = arrives
      if to.node != nil { routes.append(current) }
      route = current
    }
  }

  // MARK: Against the flow

  /// A feedback link leaves forward, turns, runs back in a channel beyond everything it passes, and arrives like any other link.
  private mutating func routeFeedback(_ drawing: GraphDrawing, _ boxes: [NodeBox], _ flowsRight: Bool) {
    var usedBefore = [Int](repeating: 0, count: labelZone.count)
    var channels: [(layers: ClosedRange<Int>, across: Double)] = []
    for link in drawing.feedback.sorted() {
      let ends = drawing.plan.links[link]
      let (fromLayer, toLayer) = (layers.layerOfNode[ends.from.node], layers.layerOfNode[ends.to.node])
      let passed = min(fromLayer, toLayer)...max(fromLayer, toLayer)
      let fromOffset = boxes[ends.from.node].outputs.first { $0.port == ends.from.port }?.offset ?? 0
      let toOffset = boxes[ends.to.node].inputs.first { $0.port == ends.to.port }?.offset ?? 0
      let start = FlowPoint(
        along: layerStart[fromLayer] + depth(of: ends.from.node, boxes, flowsRight),
        across: layers.items[ends.from.node].start + fromOffset)
      let end = FlowPoint(along: layerStart[toLayer], across: layers.items[ends.to.node].start + toOffset)
      let nodesEnd = layers.items.filter { passed.contains($0.layer) }.map { $0.start + $0.extent }.max() ?? 0
      let channelsEnd = channels.filter { $0.layers.overlaps(passed) }.map(\.across).max()
      let channel = max(nodesEnd + 1.5 * Self.channelGap, (channelsEnd ?? 0) + Self.channelGap)
      channels.append((passed, channel))
      let turn =
        layerStart[fromLayer] + layerDepth[fromLayer] + Self.channelGap
        * Double(1 + usedBefore[fromLayer + 1])
      usedBefore[fromLayer + 1] += 1
      let entry = end.along - labelZone[toLayer] - Self.channelGap * Double(usedBefore[toLayer]) - 8
      usedBefore[toLayer] += 1
      let corners = [
        FlowPoint(along: turn, across: start.across), FlowPoint(along: turn, across: channel),
        FlowPoint(along: entry, across: channel), FlowPoint(along: entry, across: end.across),
      ]
      routes.append(
        LinkRoute(
          link: link, isFeedback: true, start: start, steps: Self.rounded([start] + corners + [end]), end: end
        ))
      breadth = max(breadth, channel)
      length = max(length, turn)
    }
  }

  /// A route of right angles with rounded corners.
  private static func rounded(_ points: [FlowPoint]) -> [RouteStep] {
    func toward(_ from: FlowPoint, _ to: FlowPoint, _ distance: Double) -> FlowPoint {
      let (dx, dy) = (to.along - from.along, to.across - from.across)
      let size = max(abs(dx) + abs(dy), 0.001)
      return FlowPoint(along: from.along + dx / size * distance, across: from.across + dy / size * distance)
    }
    func distance(_ a: FlowPoint, _ b: FlowPoint) -> Double {
      abs(a.along - b.along) + abs(a.across - b.across)
    }
    var steps: [RouteStep] = []
    for index in points.indices.dropFirst().dropLast() {
      let (before, corner, after) = (points[index - 1], points[index], points[index + 1])
      let radius = min(cornerRadius, distance(before, corner) / 2, distance(corner, after) / 2)
      steps.append(.line(toward(corner, before, radius)))
      steps.append(.corner(corner, toward(corner, after, radius)))
    }
    steps.append(.line(points[points.count - 1]))
    return steps
  }
}
