internal import MillraceCore

/// The layered layout of a graph: nodes and the bends of long links, in ordered layers along the flow.
///
/// After Sugiyama, Tagawa and Toda (1981): links that close a cycle are left out; the layer of a node is the length of the longest path
/// to it; a link over several layers has a bend in each; the layers are ordered to reduce crossings.
struct DrawingLayers {
  /// A node, or the place where a long link crosses a layer.
  struct Item {
    /// The index of the node; nil for a bend.
    let node: Int?
    let layer: Int
    /// Its size across the flow.
    let extent: Double
    /// Its position across the flow, set last.
    var start = 0.0
  }

  /// The part of a link from one layer to the next.
  struct Segment {
    let link: Int
    let from: Int
    let to: Int
    /// Positions of the ends, from the start of their items.
    let fromOffset: Double
    let toOffset: Double
    /// How strongly it pulls towards a straight line.
    let weight: Double
  }

  /// Links of events give way to links of media.
  private static let weightOfEvents = 0.002

  private(set) var items: [Item] = []
  private(set) var segments: [Segment] = []
  /// The items of each layer, in order across the flow.
  private(set) var order: [[Int]] = []
  /// The layer of each node.
  let layerOfNode: [Int]
  /// The segments that leave and reach each item.
  private(set) var leaving: [[Int]] = []
  private(set) var reaching: [[Int]] = []
  /// The position of each item in its layer, updated while the layers are sorted: recomputing all for each layer takes time quadratic in
  /// their number.
  private var places: [Int] = []

  /// The size of a bend across the flow.
  static let bendExtent = 10.0

  init(_ plan: GraphPlan, boxes: [NodeBox], feedback: Set<Int>) {
    layerOfNode = Self.longestPaths(plan, feedback: feedback)
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

  /// The layer of every node: one more than that of its last predecessor. A source is directly before the first node it feeds.
  private static func longestPaths(_ plan: GraphPlan, feedback: Set<Int>) -> [Int] {
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

  /// The maximum number of sweeps; the order converges within a few.
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

  /// Sorts a layer by the mean position of each item's neighbours in the adjacent layer.
  private mutating func sort(
    _ layer: Int, by segmentsOf: [[Int]], other: KeyPath<Segment, Int>, offset: KeyPath<Segment, Double>
  ) {
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

  /// The position of every item in its layer, recomputed.
  private var positions: [Int] {
    var places = [Int](repeating: 0, count: items.count)
    for layer in order { for (position, item) in layer.enumerated() { places[item] = position } }
    return places
  }

  /// The position of a port: that of its item, plus a fraction for the port's offset.
  private func place(of item: Int, at offset: Double) -> Double {
    Double(places[item]) + offset / max(items[item].extent, 1) - 0.5
  }

  /// The number of pairs of segments that cross.
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

  /// The number of pairs in descending order, by merge sort, since a node may have a thousand links.
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
