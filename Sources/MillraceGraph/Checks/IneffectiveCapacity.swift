import MillraceCore

enum IneffectiveCapacity: Check {
  static let rule = "A link with the policy \"latest\" has no capacity: it keeps one packet."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for link in graph.links {
      guard let capacity = link.capacity, link.whenFull?.value == .latest, capacity.value != .packets(1)
      else { continue }
      problems.append(
        capacity.place.warning(
          .noEffect, "\"capacity\" has no effect: \"latest\" keeps one packet",
          hint: "remove it, or use \"dropOldest\""))
    }
  }
}
