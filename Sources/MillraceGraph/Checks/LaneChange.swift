import MillraceCore

enum LaneChange: Check {
  static let rule =
    "A node moves only between the voice and the bulk lane, and to voice only if it never waits."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard let lane = node.lane, let own = node.contract?.lane, lane.value != own else { continue }
      let type = node.type.value
      switch (own, lane.value) {
      case (.external, _):
        problems.append(
          lane.place.error(
            "\(type) has a thread of its own and cannot move to lane \"\(lane.value)\"",
            hint: "take \"lane\" out"))
      case (_, .external):
        problems.append(
          lane.place.error(
            "\(type) has no thread of its own for lane \"external\"", hint: "use \"voice\" or \"bulk\""))
      case (.bulk, .voice):
        problems.append(
          lane.place.warning(
            "\(type) may wait for milliseconds and then holds up everything on lane \"voice\"",
            hint: "take \"lane\" out"))
      default: break
      }
    }
  }
}
