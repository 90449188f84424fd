internal import MillraceCore

/// A path through the graph from a source to a sink, and its latency.
struct PlanPath {
  /// Indices of its nodes.
  var nodes: [Int]
  /// The latency of the nodes' algorithms.
  var algorithm: Nanoseconds
  /// The longest packet on the path: a sample waits for its packet to fill.
  var packet: Nanoseconds
  /// The latency that full links add.
  var queues: Nanoseconds
}

extension GraphPlan {
  /// For each source and each sink it reaches over media links, the path with the largest latency of algorithms, the longest first.
  ///
  /// Does not follow links of events and links that close a cycle.
  func paths() -> [PlanPath] {
    let feedback = feedbackLinks
    var outgoing = [[Int]](repeating: [], count: nodes.count)
    var waiting = [Int](repeating: 0, count: nodes.count)
    for (index, link) in links.enumerated() where link.shape.format != .event && !feedback.contains(index) {
      outgoing[link.from.node].append(index)
      waiting[link.to.node] += 1
    }
    let sources = nodes.indices.filter { waiting[$0] == 0 && !outgoing[$0].isEmpty }
    var order = nodes.indices.filter { waiting[$0] == 0 }
    var next = 0
    while next < order.count {
      for link in outgoing[order[next]] {
        waiting[links[link].to.node] -= 1
        if waiting[links[link].to.node] == 0 { order.append(links[link].to.node) }
      }
      next += 1
    }
    var paths: [PlanPath] = []
    for source in sources {
      let reached = longestPaths(from: source, order, outgoing)
      for sink in nodes.indices where sink != source && outgoing[sink].isEmpty {
        if let path = reached.path(to: sink, self) { paths.append(path) }
      }
    }
    return paths.enumerated().sorted { ($1.element.algorithm, $0.offset) < ($0.element.algorithm, $1.offset) }
      .map(\.element)
  }

  private func longestPaths(from source: Int, _ order: [Int], _ outgoing: [[Int]]) -> LongestPaths {
    var paths = LongestPaths(nodeCount: nodes.count)
    paths.latency[source] = nodes[source].latency
    for node in order {
      guard let soFar = paths.latency[node] else { continue }
      for link in outgoing[node] {
        let target = links[link].to.node
        let latency = soFar + nodes[target].latency
        if let known = paths.latency[target], known >= latency { continue }
        paths.latency[target] = latency
        paths.linkInto[target] = link
      }
    }
    return paths
  }
}

/// The longest paths from one source: for every node, the last link of its path.
private struct LongestPaths {
  var latency: [Nanoseconds?]
  var linkInto: [Int?]

  init(nodeCount: Int) {
    latency = Array(repeating: nil, count: nodeCount)
    linkInto = Array(repeating: nil, count: nodeCount)
  }

  func path(to sink: Int, _ plan: GraphPlan) -> PlanPath? {
    guard let latency = latency[sink] else { return nil }
    var path = PlanPath(nodes: [sink], algorithm: latency, packet: 0, queues: 0)
    var node = sink
    while let index = linkInto[node] {
      let link = plan.links[index]
      path.packet = max(path.packet, link.shape.packetDuration ?? 0)
      path.queues = path.queues.addingClamped(link.holdingTime ?? 0)
      node = link.from.node
      path.nodes.append(node)
    }
    path.nodes.reverse()
    return path
  }
}

extension GraphPlan.Link {
  /// The duration of the packets in a full link; nil when packets have no fixed duration.
  var holdingTime: Nanoseconds? { shape.packetDuration.map { $0.multipliedClamped(by: Int64(limit)) } }
}
