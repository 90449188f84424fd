public import MillraceCore

/// `text.print`: prints text, one line a packet.
///
/// - In `in`: UTF-8 text. Line breaks inside a packet are printed as spaces; the bytes are not checked.
/// - Parameters: `to`, `stdout` or `stderr`; `patience`.
/// - Every call prints all that waits. A reader that stops reading makes no other node wait: the link fills up. One that still
///   takes nothing at the end, or that is gone, fails the node, with the count of what it missed.
/// - The graph's secrets are taken out of every line (`Secrets`).
public struct TextPrint: Node, ~Copyable {
  public static let contract = NodeContract(
    "text.print", "prints text, one line a packet",
    text: """
      Line breaks inside a packet are printed as spaces. A reader that stops reading makes no other node wait: the link fills \
      up, and its policy counts.
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
      standard: isError ? 2 : 1, name: isError ? "the standard error" : "the standard output")
    sink = LineSink(stream, setup)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try sink.process(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try sink.finish(&ports) }

  public borrowing func explain(_ fault: NodeFault) -> String? { sink.explain(fault) }
}
