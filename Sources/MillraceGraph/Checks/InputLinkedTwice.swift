import MillraceCore

enum InputLinkedTwice: Check {
  static let rule = "An input takes one link."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    var first: [PortRef: PortRef] = [:]
    for (_, link, from, to) in graph.wired {
      guard let earlier = first[to] else {
        first[to] = from
        continue
      }
      // `DuplicateLink` reports the same link twice.
      if earlier == from { continue }
      let port = graph.nodes[to.node].inputs[to.index].contract
      let takesAudio = port.formats.alternatives.contains { $0.kind == .pcm }
      let canMix = takesAudio && graph.contracts["audio.mix"] != nil
      problems.append(
        link.place.error(
          .inputLinkedTwice,
          "input \(Problem.quoted(graph.describe(to))) already has a link from \(Problem.quoted(graph.describe(earlier)))",
          hint: canMix ? "mix them with audio.mix" : "remove one of the links"))
    }
  }
}
