public import MillraceCore

/// `event.log`: writes events to a file, one JSON object a line.
///
/// - In `in1` to `in16`: events of any nodes.
/// - Parameters: `path`, a file, or `-` for the standard output; `append`, to go on behind what the file holds (a line that
///   was left unfinished there is ended first).
/// - Every call writes all that waits: what was posted is in the file as soon as the bulk worker gets to it.
/// - Lines are whole, also after the disk was full; line breaks inside an event become spaces.
public struct EventLog: Node, ~Copyable {
  public static let contract = NodeContract(
    "event.log", "writes events to a file, one JSON object a line",
    text: """
      The file holds whole lines only, also after the disk was full. Events are written as soon as they come, so that the \
      file can be followed while the graph runs.
      """,
    inputs: [PortContract("in", .kind(.event), text: "events of any node", copies: 1...16)],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file, or - for the standard output"),
      ParameterContract(
        "append", .bool, default: false, text: "true: go on behind what the file holds; false: start it anew"),
    ],
    lane: .bulk,
    examples: [
      #"{ "type": "event.log", "path": "events.jsonl" }"#, #"{ "type": "event.log", "path": "-" }"#,
    ])

  private var sink: LineSink
  private let target: String
  private let inputs: Int

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let longest = setup.inputs.reduce(0) { max($0, $1.shape?.packetBytes ?? 0) }
    let path = setup.parameters.string("path")
    inputs = setup.inputs.count
    if path == "-" {
      target = "the standard output"
      sink = LineSink(standard: 1, longestLine: longest)
    } else {
      target = "\"\(path)\""
      sink = try LineSink(path: path, appends: setup.parameters.bool("append"), longestLine: longest)
    }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // One of each in turn, so that events of several nodes stay about in the order they came.
    var hasMore = true
    while hasMore {
      hasMore = false
      for input in 0..<inputs {
        guard let packet = ports.next(input) else { continue }
        try sink.add(line: packet)
        hasMore = true
      }
    }
    try sink.flush()
    return .done
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { LineSink.explain(fault, target) }
}
