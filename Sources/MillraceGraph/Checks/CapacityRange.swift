import MillraceCore

enum CapacityRange: Check {
  static let rule = "A link holds 1 to 4096 packets, or 1 ms to 60 s."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for link in graph.links {
      guard let capacity = link.capacity else { continue }
      guard capacity.value.isInRange else {
        problems.append(
          capacity.place.error(
            .invalidCapacity,
            "\"capacity\" must be \(range(of: capacity.value)), found \(shown(capacity.value))"))
        continue
      }
      guard case .time(let time) = capacity.value, let from = link.from,
        let shape = graph.nodes[from.node].shape(ofOutput: from.index)
      else { continue }
      guard let packets = LinkDefaults.packets(of: time, shape) else {
        problems.append(
          capacity.place.error(
            .invalidCapacity,
            "\"capacity\" cannot be a time: \(shape.format) packets have no fixed duration",
            hint: "set a number of packets"))
        continue
      }
      let limit = LinkCapacity.packetRange.upperBound
      if packets > limit {
        problems.append(
          capacity.place.error(
            .invalidCapacity,
            "a \"capacity\" of \(shown(capacity.value)) is \(packets) packets, the maximum is \(limit)",
            hint: "reduce it, or use longer packets"))
      }
    }
  }

  private static func range(of capacity: LinkCapacity) -> String {
    switch capacity {
    case .packets: "\(LinkCapacity.packetRange.lowerBound) to \(LinkCapacity.packetRange.upperBound) packets"
    case .time: "1 ms to 60 s"
    }
  }

  private static func shown(_ capacity: LinkCapacity) -> String {
    switch capacity {
    case .packets(let count): "\(count)"
    case .time(let time) where time % 1_000_000 == 0: "\(time / 1_000_000) ms"
    case .time(let time): "\(Double(time) / 1e6) ms"
    }
  }
}
