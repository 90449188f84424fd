import MillraceCore

enum PacketSize: Check {
  static let rule = "A packet has at most 256 MiB, the maximum of a block."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    for node in graph.nodes {
      guard case .resolved = node.outcome else { continue }
      for (index, port) in node.outputs.enumerated() {
        guard let shape = node.shape(ofOutput: index), shape.madeBytes > BlockPool.maxBlockBytes else {
          continue
        }
        problems.append(
          node.namePlace.error(
            .packetTooLarge,
            "packets of \(Problem.quoted("\(node.name).\(port.name)")) (\(shape.format)) have \(shape.madeBytes) bytes, "
              + "the maximum is \(BlockPool.maxBlockBytes)",
            hint: "use smaller pictures or shorter packets"))
      }
    }
  }
}
