import MillraceCore

enum DoubleLinkedInput: Check {
  static let rule = "An input takes one link."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var first: [PortRef: PortRef] = [:]
    for (_, link, from, to) in graph.wired {
      guard let earlier = first[to] else {
        first[to] = from
        continue
      }
      // The same link twice is told by its own check.
      if earlier == from { continue }
      let port = graph.nodes[to.node].inputs[to.index].contract
      let takesAudio = port.formats.alternatives.contains { $0.kind == .pcm }
      let canMix = takesAudio && graph.contracts["audio.mix"] != nil
      problems.append(
        link.place.error(
          "input \(Problem.quoted(graph.describe(to))) is linked already, from \(Problem.quoted(graph.describe(earlier)))",
          hint: canMix ? "put audio.mix in front to add them up" : "an input takes one link"))
    }
  }
}
