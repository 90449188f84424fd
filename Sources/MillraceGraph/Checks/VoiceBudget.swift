import MillraceCore

enum VoiceBudget: Check {
  static let rule = "The nodes of one run on lane voice fit into one worker."

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    // A virtual clock waits for slow nodes.
    guard graph.clock == .realtime else { return }
    var shares: [(name: String, share: Double)] = []
    for (index, node) in graph.nodes.enumerated() where node.finalLane != .bulk && node.pacing != .waits {
      guard let resolution = node.resolution, let contract = node.contract else { continue }
      let budget = node.budget?.value ?? resolution.budget ?? contract.budget
      shares.append((node.name, Double(budget) * 1e-6 * callsPerSecond(index, graph)))
    }
    let total = shares.reduce(0) { $0 + $1.share }
    guard total > 1 else { return }
    let largest = shares.filter { $0.share > 0.05 * total }.sorted { $0.share > $1.share }.prefix(3)
      .map { "\(Problem.quoted($0.name)) \(percent($0.share))" }
    // Empty when the graph has many small nodes.
    let mainly = largest.isEmpty ? "" : ", mainly \(Wording.joined(Array(largest), by: "and"))"
    problems.append(
      graph.place.warning(
        .voiceBudget, "the nodes on lane \"voice\" can use \(percent(total)) of a worker\(mainly)",
        hint: "move nodes to lane \"bulk\", use longer packets, or set \"budget\" to the measured time"))
  }

  private static func callsPerSecond(_ index: Int, _ graph: GraphDraft) -> Double {
    let node = graph.nodes[index]
    if node.contract?.drive == .itself || node.inputs.allSatisfy({ $0.links.isEmpty }) {
      return node.outputs.indices.compactMap { rate(node.shape(ofOutput: $0)) }.max() ?? 0
    }
    let rates = node.inputs.filter(\.contract.drives).compactMap { port -> Double? in
      guard let link = port.links.first, let from = graph.links[link].from else { return nil }
      return rate(graph.nodes[from.node].shape(ofOutput: from.index))
    }
    return node.contract?.drive == .allInputs ? rates.max() ?? 0 : rates.reduce(0, +)
  }

  private static func rate(_ shape: OutputShape?) -> Double? {
    guard let duration = shape?.packetDuration, duration > 0 else { return nil }
    return 1e9 / Double(duration)
  }

  private static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }
}
