public import MillraceCore

/// `app.sink`: hands what reaches it to the program.
///
/// - In `in`: any format.
/// - The program reads through `GraphRun.sink`. Up to `capacity` packets are queued. When the queue is full the node takes nothing: its
///   link's policy decides what becomes of the rest, and counts. When the program has no handle of the sink, a full queue drops what comes.
/// - An interruption drops what is queued of the reply.
public struct AppSink: Node, ~Copyable {
  public static let contract: NodeContract = {
    var contract = NodeContract(
      "app.sink", "hands what reaches it to the program",
      text: """
        The program that runs the graph reads by GraphRun.sink. Documentation/embedding.md shows how. Without a program that reads, packets \
        are dropped and counted.
        """,
      inputs: [PortContract("in", .any, text: "what the program gets")],
      parameters: [
        ParameterContract(
          "capacity", .integer(1...65_536), unit: "packets",
          text: "how many are queued until the program reads; otherwise 4 pictures, or 32 of anything else")
      ],
      lane: .external, budget: 100,
      examples: [#"{ "type": "app.sink" }"#, #"{ "type": "app.sink", "capacity": 100 }"#])
    contract.appEnd = .sink
    return contract
  }()

  private let channel: SinkChannel

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let channel = setup.sink else {
      throw NodeProblem(
        "the program's end of a graph has no use outside of a run",
        cure: "run it by Engine and use GraphRun.sink")
    }
    self.channel = channel
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard ports.hasPacket() else { return .done }
    let room = channel.room()
    // The program wakes the node when it has read.
    if room == .full { return .done }
    guard let packet = ports.next() else { return .done }
    if room == .free { channel.put(packet) } else { channel.countUnread() }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    channel.end()
    return .ended
  }
}
