import MillraceCore

enum PointlessCapacity: Check {
  static let rule = "A link that keeps the latest packet has no capacity of its own."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for link in graph.links {
      guard let capacity = link.capacity, link.whenFull?.value == .latest, capacity.value != .packets(1)
      else { continue }
      problems.append(
        capacity.place.warning(
          "the capacity has no effect: \"latest\" keeps one packet",
          hint: "take it out, or use \"dropOldest\""))
    }
  }
}
