public import MillraceCore

/// `event.log`: writes events to a file, one JSON object a line.
///
/// - In `in1` to `in16`: events of any nodes.
/// - Parameters: `path`, a file, or `-` for standard output; `append`, to keep the file's content and write after it (an unfinished
///   last line is completed first); `patience`.
/// - Every call writes everything queued: an event is in the file as soon as the bulk worker runs the node. Several logs may append
///   to one file; one that starts it empty has it alone.
/// - A reader of standard output or of a named pipe that stops reading blocks no other node: the link fills up. If it still takes
///   nothing at the end, or is gone, the node fails and reports how much was not written.
/// - The graph's secrets are removed from every line (`Secrets`).
public struct EventLog: Node, ~Copyable {
  public static let contract = NodeContract(
    "event.log", "writes events to a file, one JSON object a line",
    text: """
      The file holds only complete lines, even after the disk was full. Events are written as they arrive, so the file can be \
      followed while the graph runs. A reader that stops reading blocks no other node: the link fills up, and its drop \
      policy applies.
      """,
    inputs: [PortContract("in", .kind(.event), text: "events of any node", copies: 1...16)],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file, or - for standard output"),
      ParameterContract(
        "append", .bool, default: false, text: "true: append to the file; false: replace its content"),
      LineSink.patience,
    ],
    lane: .bulk,
    examples: [
      #"{ "type": "event.log", "path": "events.jsonl" }"#, #"{ "type": "event.log", "path": "-" }"#,
    ])

  private var sink: LineSink

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let path = setup.parameters.string("path")
    guard path != "-" else {
      sink = LineSink(LineTarget(standard: 1, name: "standard output"), setup)
      return
    }
    let file = try LineTarget(path: path, appends: setup.parameters.bool("append"))
    let isUnfinished = file.endsInsideLine(path)
    sink = LineSink(file, setup)
    if isUnfinished { sink.addBreak() }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try sink.process(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try sink.finish(&ports) }

  public borrowing func explain(_ fault: NodeFault) -> String? { sink.explain(fault) }
}
