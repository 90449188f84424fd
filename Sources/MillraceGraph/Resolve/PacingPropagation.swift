import MillraceCore

extension Pacing {
  /// Higher when a pace can be held back less.
  fileprivate var urgency: Int {
    switch self {
    case .waits: 0
    case .paced: 1
    case .live: 2
    }
  }
}

extension GraphDraft {
  /// Finds how packets leave every node: a node driven by its inputs is as urgent as the most urgent of them.
  mutating func propagatePacing() {
    for node in nodes.indices {
      nodes[node].pacing = nodes[node].resolution?.pacing ?? .waits
      nodes[node].liveSource = nodes[node].pacing == .live ? node : nil
    }
    // Urgency only rises, so this terminates; without cycles, one sweep in order is enough.
    var hasChanged = true
    while hasChanged {
      hasChanged = false
      for node in order where nodes[node].contract?.drive != .itself {
        for port in nodes[node].inputs where port.contract.drives {
          for link in port.links {
            guard let from = links[link].from?.node, nodes[from].pacing.urgency > nodes[node].pacing.urgency
            else { continue }
            nodes[node].pacing = nodes[from].pacing
            nodes[node].liveSource = nodes[from].liveSource
            hasChanged = true
          }
        }
      }
    }
  }
}
