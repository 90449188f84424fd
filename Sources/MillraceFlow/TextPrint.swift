public import MillraceCore

/// `text.print`: prints text, one line a packet.
///
/// - In `in`: UTF-8 text. Line breaks inside a packet are printed as spaces; the bytes are not checked.
/// - Parameters: `to`, `stdout` or `stderr`; `patience`.
/// - Every call prints everything queued. A reader that stops reading blocks no other node: the link fills up. If it still takes
///   nothing at the end, or is gone, the node fails and reports how much was not written.
/// - The graph's secrets are removed from every line (`Secrets`).
public struct TextPrint: Node, ~Copyable {
  public static let contract = NodeContract(
    "text.print", "prints text, one line a packet",
    text: """
      Line breaks inside a packet are printed as spaces. A reader that stops reading blocks no other node: the link fills \
      up, and its drop policy applies.
      """,
    inputs: [PortContract("in", .kind(.text), text: "UTF-8 text")],
    parameters: [
      ParameterContract("to", .choice(["stdout", "stderr"]), default: "stdout", text: "where it is printed"),
      LineSink.patience,
    ],
    lane: .bulk,
    examples: [#"{ "type": "text.print" }"#, #"{ "type": "text.print", "to": "stderr" }"#])

  private var sink: LineSink

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let isError = setup.parameters.string("to") == "stderr"
    let stream = LineTarget(
      standard: isError ? 2 : 1, name: isError ? "standard error" : "standard output")
    sink = LineSink(stream, setup)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try sink.process(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try sink.finish(&ports) }

  public borrowing func explain(_ fault: NodeFault) -> String? { sink.explain(fault) }
}
