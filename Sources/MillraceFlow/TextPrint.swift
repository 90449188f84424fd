public import MillraceCore

/// `text.print`: prints text, one line a packet.
///
/// - In `in`: UTF-8 text. Line breaks inside a packet are printed as spaces; the bytes are not checked.
/// - Parameter `to`: `stdout` or `stderr`.
/// - Every call prints all that waits in one write. A reader that stops reading makes the link fill up; one that is gone
///   fails the node.
public struct TextPrint: Node, ~Copyable {
  public static let contract = NodeContract(
    "text.print", "prints text, one line a packet",
    text: "Line breaks inside a packet are printed as spaces.",
    inputs: [PortContract("in", .kind(.text), text: "UTF-8 text")],
    parameters: [
      ParameterContract("to", .choice(["stdout", "stderr"]), default: "stdout", text: "where it is printed")
    ],
    lane: .bulk,
    examples: [#"{ "type": "text.print" }"#, #"{ "type": "text.print", "to": "stderr" }"#])

  private var sink: LineSink
  private let target: String

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let isError = setup.parameters.string("to") == "stderr"
    self.init(
      descriptor: isError ? 2 : 1, target: isError ? "the standard error" : "the standard output",
      longestLine: setup.inputs[0].shape?.packetBytes ?? 0)
  }

  init(descriptor: Int32, target: String, longestLine: Int) {
    sink = LineSink(standard: descriptor, longestLine: longestLine)
    self.target = target
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() { try sink.add(line: packet) }
    try sink.flush()
    return .done
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { LineSink.explain(fault, target) }
}
