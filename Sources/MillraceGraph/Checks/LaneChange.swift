import MillraceCore

enum LaneChange: Check {
  static let rule =
    "A node can move only between the lanes voice and bulk, and to voice only if it does not block."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard let lane = node.lane, let own = node.contract?.lane, lane.value != own else { continue }
      let type = node.type.value
      switch (own, lane.value) {
      case (.external, _):
        problems.append(
          lane.place.error(
            .invalidLane, "\(type) has its own thread and cannot run on lane \"\(lane.value)\"",
            hint: "remove \"lane\""))
      case (_, .external):
        problems.append(
          lane.place.error(
            .invalidLane, "\(type) cannot run on lane \"external\": it has no thread of its own",
            hint: "use \"voice\" or \"bulk\""))
      case (.bulk, .voice):
        problems.append(
          lane.place.warning(
            .blockingOnVoiceLane, "\(type) can block for milliseconds and delay every node on lane \"voice\"",
            hint: "remove \"lane\""))
      default: break
      }
    }
  }
}
