internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import Synchronization

/// `conformance.user`: records everything a service node emits, plays replies instantly, and forwards the commands it is sent.
///
/// Before a packet of audio or text is recorded, every event the service emitted before it is: events always precede what follows
/// them on other links.
struct ConformanceUser: Node {
  static let contract = NodeContract(
    "conformance.user", "the user of a case: records, plays and commands",
    inputs: [
      PortContract("events", .kind(.event), text: "events of the service node"),
      PortContract("words", .kind(.event), text: "events from other outputs", required: false),
      PortContract("audio", .any, text: "replies", required: false),
      PortContract("streams", .kind(.text), text: "addresses of streams with replies", required: false),
    ],
    outputs: [PortContract("control", .kind(.event), text: "commands and playback reports", required: false)],
    parameters: [
      ParameterContract("stage", .integer(0...Int.max), required: true, text: "number of the case"),
      ParameterContract("reports", .bool, default: true, text: "true: sends playback reports"),
      ParameterContract(
        "streams", .bool, default: false,
        text: "true: replies are streams, played when the service has ended them"),
    ], lane: .voice, budget: 100_000, drive: .itself,
    asynchronousPaths: ["events", "words", "audio", "streams"].map {
      AsynchronousPath(from: $0, to: "control")
    }
  ) { resolution in
    resolution.outputs["control"] = OutputShape(.event, packetDuration: nil, packetBytes: 4_096)
    resolution.pacing = .waits
  }

  private let stage: CaseState
  private let reports: Bool
  private let streams: Bool
  private var outgoing: [String] = []
  /// The reply whose first sample was reported as played.
  private var audible: UInt32 = 0
  private var finished: [UInt32] = []

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    stage = try CaseState.find(setup.parameters.integer("stage"))
    reports = setup.parameters.bool("reports")
    streams = setup.parameters.bool("streams")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if try say(&ports) { return .again }
    takeEvents(&ports)
    for (input, keepsText) in [(1, false), (3, true)] where ports.hasPacket(input) {
      takeEvents(&ports)
      if let packet = ports.next(input) {
        let content = packet.samples(of: UInt8.self)
        if keepsText { stage.note(.stream(Self.text(content))) } else { keep(content, ports.generation) }
      }
      return .again
    }
    if ports.hasPacket(2) {
      takeEvents(&ports)
      if let packet = ports.next(2) { hear(packet) }
      return .again
    }
    guard outgoing.isEmpty else { return .again }
    return stage.isOver.load(ordering: .acquiring) ? .ended : .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try process(&ports) == .again ? .again : .ended
  }

  /// A command as JSON; empty: whatever is being played has now been played to its end.
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .text(let packet) = consume message else { return }
    let text = Self.text(packet.samples(of: UInt8.self))
    if !text.isEmpty { outgoing.append(text) }
    if text.isEmpty || stage.finishesReplies.load(ordering: .acquiring) { reportFinished() }
    _ = try say(&ports)
  }

  mutating func interrupted(_ ports: inout Ports) {
    finished = []
    audible = 0
  }

  private mutating func takeEvents(_ ports: inout Ports) {
    while let packet = ports.next(0) { keep(packet.samples(of: UInt8.self), ports.generation) }
  }

  private mutating func keep(_ bytes: Span<UInt8>, _ generation: UInt32) {
    let text = bytes.indices.map { bytes[$0] }
    do {
      for event in try stage.double.events(in: try JSONValue(parsing: text)) {
        stage.note(.event(event))
        if streams, case .replyEnded = event { finish(generation) }
      }
    } catch {
      stage.note(.invalid("\(error)"))
    }
  }

  private mutating func hear(_ packet: borrowing Packet) {
    let span = packet.samples(of: UInt8.self)
    let bytes = span.indices.map { span[$0] }
    let ends = packet.flags.contains(.endOfUtterance)
    stage.note(
      .audio(
        ServiceRecord.Audio(
          stage.double.replies(in: bytes), bytes: bytes.count, generation: packet.generation,
          endsUtterance: ends)))
    if !bytes.isEmpty && audible != packet.generation {
      audible = packet.generation
      report("replyAudible", packet.generation)
    }
    guard ends else { return }
    audible = 0
    finish(packet.generation)
  }

  private mutating func finish(_ reply: UInt32) {
    finished.append(reply)
    if stage.finishesReplies.load(ordering: .acquiring) { reportFinished() }
  }

  private mutating func reportFinished() {
    for reply in finished { report("replyFinished", reply) }
    finished = []
  }

  private mutating func report(_ name: String, _ reply: UInt32) {
    guard reports else { return }
    let report: JSONValue = [
      "event": .string(name), "reply": .integer(Int(reply)), "samples": 1, "ms": 1,
    ]
    outgoing.append(report.text)
  }

  /// Sends a message. True when there was one and room for it.
  private mutating func say(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard !outgoing.isEmpty, ports.hasRoom(0) else { return false }
    let bytes = Array(outgoing.removeFirst().utf8)
    var packet = try ports.makePacket(0, bytes: bytes.count, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    for index in bytes.indices { target[index] = bytes[index] }
    ports.emit(packet, to: 0)
    return true
  }

  private static func text(_ bytes: Span<UInt8>) -> String {
    String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
  }
}
