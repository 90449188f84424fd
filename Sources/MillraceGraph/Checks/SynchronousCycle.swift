import MillraceCore

enum SynchronousCycle: Check {
  static let rule = "A cycle has an asynchronous path: through a service, playback or a device."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    // The vertices are links: a node may be synchronous from one input and asynchronous from another.
    let successors = graph.links.map { link -> [Int] in
      guard link.from != nil, let to = link.to else { return [] }
      return graph.nodes[to.node].outputs.indices.flatMap { output in
        graph.isSynchronous(to.node, from: to.index, to: output)
          ? graph.nodes[to.node].outputs[output].links : []
      }
    }
    for group in StronglyConnectedComponents(successors: successors).groups {
      guard let cycle = shortestCycle(in: group, successors) else { continue }
      let names = cycle.compactMap { graph.links[$0].from.map { graph.nodes[$0.node].name } }
      guard let start = names.first else { continue }
      let chain = (names + [start]).joined(separator: " -> ")
      problems.append(
        graph.links[cycle[cycle.count - 1]].place.error(
          .synchronousCycle, "the cycle \(Problem.quoted(chain)) would deadlock: it has no asynchronous path",
          hint: "remove a link, or route it through an asynchronous node, such as a service or playback"))
    }
  }

  /// The links of the shortest path from the first link of a group back to it; nil when there is none.
  private static func shortestCycle(in group: [Int], _ successors: [[Int]]) -> [Int]? {
    guard let start = group.first else { return nil }
    let members = Set(group)
    var previous: [Int: Int] = [:]
    var front = [start]
    while !front.isEmpty {
      var next: [Int] = []
      for link in front {
        for target in successors[link] where members.contains(target) {
          if target == start { return path(to: link, previous) }
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

  private static func path(to end: Int, _ previous: [Int: Int]) -> [Int] {
    var path = [end]
    while let link = path.last.flatMap({ previous[$0] }) { path.append(link) }
    return path.reversed()
  }
}
