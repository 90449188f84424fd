import MillraceCore

enum PacketSize: Check {
  static let rule = "A packet has at most as many bytes as a block holds: 256 MiB."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard case .resolved = node.outcome else { continue }
      for (index, port) in node.outputs.enumerated() {
        guard let shape = node.shape(ofOutput: index), shape.madeBytes > BlockPool.maxBlockBytes else {
          continue
        }
        problems.append(
          node.namePlace.error(
            "\(Problem.quoted("\(node.name).\(port.name)")) carries \(shape.format), \(shape.madeBytes) bytes a packet; "
              + "a packet has at most \(BlockPool.maxBlockBytes)",
            hint: "make its pictures smaller, or its packets shorter"))
      }
    }
  }
}
