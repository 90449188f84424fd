/// Positions items across the flow, so that links are as straight as possible, in the order of their layer and without overlap.
///
/// Layer by layer: the preferred position of an item is the mean of those that make its links straight. Conflicts within a layer are
/// solved exactly (isotonic regression by the pool adjacent violators algorithm).
struct DrawingPlacement {
  /// The space between two nodes of a layer, and next to a bend.
  private static let nodeGap = 34.0
  private static let bendGap = 18.0
  /// The number of sweeps over all layers. Long chains of branches converge within about ten.
  private static let rounds = 24

  /// The neighbours that pull at an item in a sweep.
  private enum Side { case before, after, both }

  static func place(_ layers: inout DrawingLayers) {
    for layer in layers.order.indices {
      var start = 0.0
      for (position, item) in layers.order[layer].enumerated() {
        if position > 0 { start += separation(layers, layers.order[layer][position - 1], item) }
        layers.place(item, at: start)
      }
    }
    for _ in 0..<rounds {
      for layer in layers.order.indices { settle(layer, in: &layers, .before) }
      for layer in layers.order.indices.reversed() { settle(layer, in: &layers, .after) }
    }
    for _ in 0..<rounds {
      for layer in layers.order.indices { settle(layer, in: &layers, .both) }
    }
    let first = layers.items.map(\.start).min() ?? 0
    for item in layers.items.indices {
      layers.place(item, at: (layers.items[item].start - first).rounded())
    }
  }

  private static func separation(_ layers: DrawingLayers, _ first: Int, _ second: Int) -> Double {
    let bend = layers.items[first].node == nil || layers.items[second].node == nil
    return layers.items[first].extent + (bend ? bendGap : nodeGap)
  }

  private static func settle(_ layer: Int, in layers: inout DrawingLayers, _ side: Side) {
    let items = layers.order[layer]
    // Relative to the tightly packed position of each item, "in order without overlap" means "not descending".
    var packed = 0.0
    var blocks: [(value: Double, weight: Double, count: Int)] = []
    var offsets: [Double] = []
    for (position, item) in items.enumerated() {
      if position > 0 { packed += separation(layers, items[position - 1], item) }
      offsets.append(packed)
      let preferred = preference(of: item, in: layers, side)
      blocks.append((preferred.place - packed, preferred.weight, 1))
      while blocks.count > 1, blocks[blocks.count - 2].value > blocks[blocks.count - 1].value {
        let last = blocks.removeLast()
        let previous = blocks.removeLast()
        let weight = last.weight + previous.weight
        let value = (last.value * last.weight + previous.value * previous.weight) / weight
        blocks.append((value, weight, last.count + previous.count))
      }
    }
    var position = 0
    for block in blocks {
      for _ in 0..<block.count {
        layers.place(items[position], at: block.value + offsets[position])
        position += 1
      }
    }
  }

  /// The preferred position of an item, and its weight.
  private static func preference(of item: Int, in layers: DrawingLayers, _ side: Side) -> (
    place: Double, weight: Double
  ) {
    var sum = 0.0
    var weight = 0.0
    func pull(_ weightOfLink: Double, to other: Int, _ otherOffset: Double, _ ownOffset: Double) {
      // The bends of one link pull most: a long link should be straight.
      let bends = [item, other].count { layers.items[$0].node == nil }
      let share = weightOfLink * [1.0, 2.0, 8.0][bends]
      sum += share * (layers.items[other].start + otherOffset - ownOffset)
      weight += share
    }
    if side != .after {
      for index in layers.reaching[item] {
        let segment = layers.segments[index]
        pull(segment.weight, to: segment.from, segment.fromOffset, segment.toOffset)
      }
    }
    if side != .before {
      for index in layers.leaving[item] {
        let segment = layers.segments[index]
        pull(segment.weight, to: segment.to, segment.toOffset, segment.fromOffset)
      }
    }
    // Without neighbours on this side, a low weight for the current position.
    return weight == 0 ? (layers.items[item].start, 0.1) : (sum / weight, weight)
  }
}
