public import MillraceCore

/// `flow.tee`: hands every packet to several branches.
///
/// - In `in`: any format. Out `out1` to `out16`: the same packets, same times; the branches share their bytes.
/// - How much a branch may lag, and what happens when it does, is set on its link: a link that blocks holds back all branches,
///   one that drops harms only its own.
/// - Latency none. Nothing is copied: a node that changes a packet makes its own copy then.
public struct FlowTee: Node {
  public static let contract = NodeContract(
    "flow.tee", "hands every packet to several branches",
    text: """
      Each branch has a link of its own with its own capacity and policy, so that a slow branch with a dropping policy does \
      not hold back the others. The bytes are shared, not copied.
      """,
    inputs: [PortContract("in", .any, text: "packets of any format")],
    outputs: [PortContract("out", .any, text: "the same packets", copies: 1...16)],
    budget: 50,
    examples: [#"{ "type": "flow.tee" }"#],
    resolve: { resolution in
      guard var shape = resolution.input else { return }
      // However many packets the node in front emits in one call, this one hands on one at a time.
      shape.burst = 1
      for name in resolution.wanted.keys { resolution.outputs[name] = shape }
    })

  /// Index of the last linked output, which gets the packet itself; the ones before get shares.
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
