public import MillraceCore

/// `flow.tee`: copies every packet to several branches.
///
/// - In `in`: any format. Out `out1` to `out16`: the same packets with the same timestamps; the branches share the memory.
/// - How far a branch may lag, and what happens then, is set on its link: a blocking link holds back all branches, a dropping one
///   affects only its own.
/// - No latency. Nothing is copied: a node that modifies a packet copies it first.
public struct FlowTee: Node {
  public static let contract = NodeContract(
    "flow.tee", "copies every packet to several branches",
    text: """
      Each branch has its own link with its own capacity and policy, so that a slow branch with a dropping policy does not \
      hold back the others. The memory is shared, not copied.
      """,
    inputs: [PortContract("in", .any, text: "packets of any format")],
    outputs: [PortContract("out", .any, text: "the same packets", copies: 1...16)],
    budget: 50,
    examples: [#"{ "type": "flow.tee" }"#],
    resolve: { resolution in
      guard var shape = resolution.input else { return }
      // Passes on one packet per call, however many the node upstream emits in one.
      shape.burst = 1
      for name in resolution.wanted.keys { resolution.outputs[name] = shape }
    })

  /// Index of the last linked output, which gets the packet itself; those before it get shared references.
  private let last: Int

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    last = setup.outputs.lastIndex { $0.isLinked } ?? 0
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    for output in 0..<last where ports.isLinked(output: output) { ports.emit(packet.share(), to: output) }
    if ports.isLinked(output: last) { ports.emit(packet, to: last) }
    return .done
  }
}
