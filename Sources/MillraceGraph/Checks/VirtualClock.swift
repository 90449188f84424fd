import MillraceCore

enum VirtualClock: Check {
  static let rule = "On a virtual clock every node can follow it."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    guard graph.clock == .virtual else { return }
    let hint = graph.isClockOverridden ? "it runs with --clock realtime only" : "use \"clock\": \"realtime\""
    for node in graph.nodes where node.contract?.followsVirtualClock == false {
      problems.append(
        node.type.place.error(
          "node \(Problem.quoted(node.name)) (\(node.type.value)) cannot follow a virtual clock", hint: hint))
    }
  }
}
