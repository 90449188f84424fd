public import MillraceCore

/// `event.log`: writes events to a file, one JSON object a line.
///
/// - In `in1` to `in16`: events of any nodes.
/// - Parameters: `path`, a file, or `-` for the standard output; `append`, to go on behind what the file holds (a line that
///   was left unfinished there is ended first); `patience`.
/// - Every call writes all that waits: what was posted is in the file as soon as the bulk worker gets to it. Several logs may
///   append to one file; one that starts it anew has it alone.
/// - A reader of the standard output or of a named pipe that stops reading makes no other node wait: the link fills up. One that
///   still takes nothing at the end, or that is gone, fails the node, with the count of what it missed.
/// - The graph's secrets are taken out of every line (`Secrets`).
public struct EventLog: Node, ~Copyable {
  public static let contract = NodeContract(
    "event.log", "writes events to a file, one JSON object a line",
    text: """
      The file holds whole lines only, also after the disk was full. Events are written as soon as they come, so that the \
      file can be followed while the graph runs. A reader that stops reading makes no other node wait: the link fills \
      up, and its policy counts.
      """,
    inputs: [PortContract("in", .kind(.event), text: "events of any node", copies: 1...16)],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file, or - for the standard output"),
      ParameterContract(
        "append", .bool, default: false, text: "true: go on behind what the file holds; false: start it anew"),
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
      sink = LineSink(LineTarget(standard: 1, name: "the standard output"), setup)
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
