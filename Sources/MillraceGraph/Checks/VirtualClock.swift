import MillraceCore

enum VirtualClock: Check {
  static let rule = "A graph on a virtual clock has only nodes that can follow it."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    guard graph.clock == .virtual else { return }
    let hint = graph.isClockOverridden ? "use --clock realtime" : "use \"clock\": \"realtime\""
    for node in graph.nodes where node.contract?.followsVirtualClock == false {
      problems.append(
        node.type.place.error(
          .virtualClock,
          "node \(Problem.quoted(node.name)) (\(node.type.value)) cannot follow a virtual clock", hint: hint))
    }
  }
}
