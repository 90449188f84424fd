internal import MillraceCore

/// The graph as the layout sees it: nodes and the bends of long links, in layers along the flow, each layer in an order.
///
/// After Sugiyama, Tagawa and Toda (1981): links that close a cycle are set aside, every node goes as far down the flow as the
/// longest way to it, links over several layers get a bend in each, and the layers are ordered so that few links cross.
struct DrawingLayers {
  /// A node, or the place where a long link passes a layer.
  struct Item {
    /// Index of the node; nil for a bend.
    let node: Int?
    let layer: Int
    /// Room across.
    let extent: Double
    /// Place across; decided last.
    var start = 0.0
  }

  /// A link's stretch from one layer to the next.
  struct Segment {
    let link: Int
    let from: Int
    let to: Int
    /// Places of the ends, from the start of their items.
    let fromOffset: Double
    let toOffset: Double
    /// How much it matters that it runs straight.
    let weight: Double
  }

  /// Events run beside the media: they give way.
  private static let weightOfEvents = 0.002

  private(set) var items: [Item] = []
  private(set) var segments: [Segment] = []
  /// Items of each layer, first to last across.
  private(set) var order: [[Int]] = []
  /// Layer of each node.
  let layerOfNode: [Int]
  /// Segments that leave and reach each item.
  private(set) var leaving: [[Int]] = []
  private(set) var reaching: [[Int]] = []
  /// Position of each item in its layer, kept up while the layers are put in order: counting anew for each layer would take time
  /// in the square of their number.
  private var places: [Int] = []

  /// Room of a bend across.
  static let bendExtent = 10.0

  init(_ plan: GraphPlan, boxes: [NodeBox], feedback: Set<Int>) {
    layerOfNode = Self.longestWays(plan, feedback: feedback)
    order = Array(repeating: [], count: (layerOfNode.max() ?? -1) + 1)
    for node in plan.nodes.indices {
      order[layerOfNode[node]].append(node)
      items.append(Item(node: node, layer: layerOfNode[node], extent: boxes[node].extent))
    }
    for (index, link) in plan.links.enumerated() where !feedback.contains(index) {
      addSegments(of: index, link, boxes: boxes)
    }
    leaving = Array(repeating: [], count: items.count)
    reaching = leaving
    for (index, segment) in segments.enumerated() {
      leaving[segment.from].append(index)
      reaching[segment.to].append(index)
    }
    reduceCrossings()
  }

  /// The layer of every node: one more than the furthest node before it. A node with nothing before it stands right in front of
  /// what it feeds.
  private static func longestWays(_ plan: GraphPlan, feedback: Set<Int>) -> [Int] {
    let links = plan.links.enumerated().filter { !feedback.contains($0.offset) }.map(\.element)
    var outgoing = [[Int]](repeating: [], count: plan.nodes.count)
    var waiting = [Int](repeating: 0, count: plan.nodes.count)
    for link in links {
      outgoing[link.from.node].append(link.to.node)
      waiting[link.to.node] += 1
    }
    var layers = [Int](repeating: 0, count: plan.nodes.count)
    let sources = plan.nodes.indices.filter { waiting[$0] == 0 }
    var ready = sources
    var next = 0
    while next < ready.count {
      let node = ready[next]
      next += 1
      for target in outgoing[node] {
        layers[target] = max(layers[target], layers[node] + 1)
        waiting[target] -= 1
        if waiting[target] == 0 { ready.append(target) }
      }
    }
    for source in sources {
      if let nearest = outgoing[source].map({ layers[$0] }).min() { layers[source] = nearest - 1 }
    }
    return layers
  }

  private mutating func addSegments(of index: Int, _ link: GraphPlan.Link, boxes: [NodeBox]) {
    var from = link.from.node
    let weight = link.shape.format.kind == .event ? Self.weightOfEvents : 1
    var fromOffset = boxes[from].outputs.first { $0.port == link.from.port }?.offset ?? 0
    let first = layerOfNode[from] + 1
    for layer in first..<max(first, layerOfNode[link.to.node]) {
      let bend = items.count
      items.append(Item(node: nil, layer: layer, extent: Self.bendExtent))
      order[layer].append(bend)
      segments.append(
        Segment(
          link: index, from: from, to: bend, fromOffset: fromOffset, toOffset: Self.bendExtent / 2,
          weight: weight))
      from = bend
      fromOffset = Self.bendExtent / 2
    }
    let toOffset = boxes[link.to.node].inputs.first { $0.port == link.to.port }?.offset ?? 0
    segments.append(
      Segment(
        link: index, from: from, to: link.to.node, fromOffset: fromOffset, toOffset: toOffset, weight: weight)
    )
  }

  mutating func place(_ item: Int, at start: Double) {
    items[item].start = start
  }

  // MARK: Order within layers

  /// Rounds of sweeps; the order settles within a few.
  private static let rounds = 12

  private mutating func reduceCrossings() {
    guard order.count > 1 else { return }
    places = positions
    var best = order
    var fewest = crossings()
    for round in 0..<Self.rounds where fewest > 0 || round == 0 {
      for layer in order.indices.dropFirst() {
        sort(layer, by: reaching, other: \.from, offset: \.fromOffset)
      }
      keepIfBetter(&best, &fewest)
      for layer in order.indices.dropLast().reversed() {
        sort(layer, by: leaving, other: \.to, offset: \.toOffset)
      }
      keepIfBetter(&best, &fewest)
    }
    order = best
    places = positions
  }

  private func keepIfBetter(_ best: inout [[Int]], _ fewest: inout Int) {
    let count = crossings()
    if count < fewest {
      fewest = count
      best = order
    }
  }

  /// Orders a layer by the mean place of each item's neighbours in the layer beside it.
  private mutating func sort(
    _ layer: Int, by segmentsOf: [[Int]], other: KeyPath<Segment, Int>, offset: KeyPath<Segment, Double>
  ) {
    // Nothing to be put in order, as in most layers of a chain.
    guard order[layer].count > 1 else { return }
    let keyed = order[layer].enumerated().map { position, item -> (key: Double, position: Int, item: Int) in
      let around = segmentsOf[item].map { segments[$0] }
      guard !around.isEmpty else { return (Double(position), position, item) }
      let sum = around.reduce(0.0) { $0 + place(of: $1[keyPath: other], at: $1[keyPath: offset]) }
      return (sum / Double(around.count), position, item)
    }
    order[layer] = keyed.sorted { ($0.key, $0.position) < ($1.key, $1.position) }.map(\.item)
    for (position, item) in order[layer].enumerated() { places[item] = position }
  }

  /// Position of every item in its layer, counted anew.
  private var positions: [Int] {
    var places = [Int](repeating: 0, count: items.count)
    for layer in order { for (position, item) in layer.enumerated() { places[item] = position } }
    return places
  }

  /// A port's place: the item's position, and a fraction for the port's own place on it.
  private func place(of item: Int, at offset: Double) -> Double {
    Double(places[item]) + offset / max(items[item].extent, 1) - 0.5
  }

  /// How many pairs of segments cross, over the whole drawing.
  private func crossings() -> Int {
    var ends = [[(from: Double, to: Double)]](repeating: [], count: order.count)
    for segment in segments {
      ends[items[segment.from].layer].append(
        (
          place(of: segment.from, at: segment.fromOffset),
          place(of: segment.to, at: segment.toOffset)
        ))
    }
    return ends.reduce(0) {
      $0 + Self.inversions($1.sorted { ($0.from, $0.to) < ($1.from, $1.to) }.map(\.to))
    }
  }

  /// Pairs in the wrong order, by merging: n log n, since a fan of a thousand links is possible.
  private static func inversions(_ values: [Double]) -> Int {
    var values = values
    var merged = values
    var count = 0
    var width = 1
    while width < values.count {
      var start = 0
      while start < values.count {
        let middle = min(start + width, values.count)
        let end = min(start + 2 * width, values.count)
        var (left, right) = (start, middle)
        for place in start..<end {
          if left < middle, right == end || values[left] <= values[right] {
            merged[place] = values[left]
            left += 1
          } else {
            merged[place] = values[right]
            right += 1
            count += middle - left
          }
        }
        start = end
      }
      swap(&values, &merged)
      width *= 2
    }
    return count
  }
}
