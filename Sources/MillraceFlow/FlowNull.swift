public import MillraceCore

/// `flow.null`: takes packets of any format and discards them.
///
/// - In `in`: any format. No output but `events`.
/// - Posts `total` once, when its input has ended: the number of packets and bytes received.
public struct FlowNull: Node {
  public static let contract = NodeContract(
    "flow.null", "takes packets of any format and discards them",
    text: "Ends an unused branch and reports how much arrived.",
    inputs: [PortContract("in", .any, text: "packets of any format")],
    events: [
      EventContract("total", text: "once at the end; packets: number received; bytes: their total size")
    ],
    budget: 50,
    examples: [#"{ "type": "flow.null" }"#])

  private var packets = 0
  private var bytes = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    packets &+= 1
    bytes &+= Int(packet.byteCount)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let packets = packets
    let bytes = bytes
    ports.post(0) { event in
      event.field("packets", packets)
      event.field("bytes", bytes)
    }
    return .ended
  }
}
