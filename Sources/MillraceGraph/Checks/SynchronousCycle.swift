import MillraceCore

enum SynchronousCycle: Check {
  static let rule = "A cycle passes an asynchronous path: a service, playback, a device."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    // Cycles are looked for between links, since a node may be synchronous from one input and asynchronous from another.
    let successors = graph.links.map { link -> [Int] in
      guard link.from != nil, let to = link.to else { return [] }
      return graph.nodes[to.node].outputs.indices.flatMap { output in
        graph.isSynchronous(to.node, from: to.index, to: output)
          ? graph.nodes[to.node].outputs[output].links : []
      }
    }
    for group in StrongComponents(successors: successors).groups {
      guard let cycle = shortestCycle(in: group, successors) else { continue }
      let names = cycle.compactMap { graph.links[$0].from.map { graph.nodes[$0.node].name } }
      guard let start = names.first else { continue }
      let chain = (names + [start]).joined(separator: " -> ")
      problems.append(
        graph.links[cycle[cycle.count - 1]].place.error(
          "\(Problem.quoted(chain)) is a cycle in which each waits for the other",
          hint:
            "take one link out, or lead it through a node that answers in its own time, such as a service or playback"
        ))
    }
  }

  /// The links of the shortest way from the first link of a group back to it; nil when there is none.
  private static func shortestCycle(in group: [Int], _ successors: [[Int]]) -> [Int]? {
    guard let start = group.first else { return nil }
    let members = Set(group)
    var previous: [Int: Int] = [:]
    var front = [start]
    while !front.isEmpty {
      var next: [Int] = []
      for link in front {
        for target in successors[link] where members.contains(target) {
          if target == start { return way(to: link, previous) }
          if previous[target] == nil {
            previous[target] = link
            next.append(target)
          }
        }
      }
      front = next
    }
    return nil
  }

  private static func way(to end: Int, _ previous: [Int: Int]) -> [Int] {
    var way = [end]
    while let link = way.last.flatMap({ previous[$0] }) { way.append(link) }
    return way.reversed()
  }
}
