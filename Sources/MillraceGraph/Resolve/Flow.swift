import MillraceCore

extension Pacing {
  /// How little a pace can be held back.
  fileprivate var urgency: Int {
    switch self {
    case .waits: 0
    case .paced: 1
    case .live: 2
    }
  }
}

extension GraphDraft {
  /// Finds how packets come out of every node: a node that is driven by its inputs is as urgent as the most urgent of them.
  mutating func spreadPacing() {
    for node in nodes.indices {
      nodes[node].pacing = nodes[node].resolution?.pacing ?? .waits
      nodes[node].liveSource = nodes[node].pacing == .live ? node : nil
    }
    // Urgency only grows, so this ends; in order, one sweep does for all but cycles.
    var hasChanged = true
    while hasChanged {
      hasChanged = false
      for node in order where nodes[node].contract?.drive != .itself {
        for port in nodes[node].inputs where port.contract.drives {
          for link in port.links {
            guard let from = links[link].from?.node, nodes[from].pacing.urgency > nodes[node].pacing.urgency
            else {
              continue
            }
            nodes[node].pacing = nodes[from].pacing
            nodes[node].liveSource = nodes[from].liveSource
            hasChanged = true
          }
        }
      }
    }
  }

  /// Capacity in packets and policy of a link.
  ///
  /// What the graph does not say is chosen by what the writer can bear and what is carried:
  ///
  /// | writer | carries | capacity | policy |
  /// |---|---|---|---|
  /// | waits | audio | 16 packets | block |
  /// | waits | pictures | 4 packets | block |
  /// | waits | text, events | 64 packets | block |
  /// | paced, live | audio | 200 ms (64 packets when they have no length) | dropOldest |
  /// | paced, live | pictures | 1 packet | latest |
  /// | paced, live | text, events | 64 packets | dropNewest |
  ///
  /// Late audio is worth less than new audio, an old picture nothing; of texts and events the first tell what began, and the
  /// lost ones are counted.
  func terms(of link: DraftLink, _ shape: OutputShape, pacing: Pacing) -> (limit: Int, policy: LinkPolicy) {
    Self.terms(capacity: link.capacity?.value, policy: link.whenFull?.value, shape, pacing: pacing)
  }

  static func terms(
    capacity: LinkCapacity?, policy: LinkPolicy?, _ shape: OutputShape, pacing: Pacing
  ) -> (limit: Int, policy: LinkPolicy) {
    let policy = policy ?? Self.defaultPolicy(shape.format.kind, pacing)
    if policy == .latest { return (1, policy) }
    switch capacity {
    case .packets(let count): return (count, policy)
    case .time(let time):
      return (Self.packets(of: time, shape) ?? LinkCapacity.packetRange.upperBound, policy)
    case nil: return (Self.defaultLimit(shape, policy), policy)
    }
  }

  private static func defaultPolicy(_ kind: Format.Kind, _ pacing: Pacing) -> LinkPolicy {
    if pacing == .waits { return .block }
    switch kind {
    case .pcm, .opus, .mp3, .ogg, .aac: return .dropOldest
    case .video, .jpeg, .png: return .latest
    case .text, .event: return .dropNewest
    }
  }

  private static func defaultLimit(_ shape: OutputShape, _ policy: LinkPolicy) -> Int {
    switch shape.format.kind {
    case .text, .event: return 64
    case .video, .jpeg, .png: return 4
    case .pcm, .opus, .mp3, .ogg, .aac:
      if policy == .block { return 16 }
      let packets = packets(of: .milliseconds(200), shape) ?? 64
      return min(packets, LinkCapacity.packetRange.upperBound)
    }
  }

  /// Whole packets that stand for at least a time; nil when packets have no regular length.
  static func packets(of time: Nanoseconds, _ shape: OutputShape) -> Int? {
    guard let duration = shape.packetDuration, duration > 0 else { return nil }
    return max(1, Int((time + duration - 1) / duration))
  }
}
