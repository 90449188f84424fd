internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Emits the packets of a tap on a link of another graph: the source of the graphs that record links. Only the catalogue of
/// `LinkRecording` has it.
///
/// - Output `out`: the packets of the link, starting at position 0. Text becomes JSON lines with a time.
/// - Polls the tap, because a tap does not wake its reader.
struct TapSource: Node {
  static let contract = NodeContract(
    "control.tap", "the packets of a tapped link",
    outputs: [PortContract("out", .any, text: "the packets of the link")],
    parameters: [ParameterContract("tap", .integer(0...Int.max), required: true, text: "number of the tap")],
    lane: .bulk, drive: .itself
  ) { resolution in
    guard let line = lines.withLock({ $0[resolution.parameters.integer("tap")] }) else { return }
    resolution.outputs["out"] = line.shape
  }

  /// A tap for a source.
  struct Line: Sendable {
    let tap: LinkTap
    /// Time until the next read when the tap is empty.
    let pollInterval: Nanoseconds

    var isText: Bool { tap.shape.format == .text }

    var shape: OutputShape {
      // An escape has at most six bytes; the 64 bytes are for the JSON around the text.
      isText
        ? OutputShape(.event, packetDuration: nil, packetBytes: 6 * tap.shape.packetBytes + 64)
        : OutputShape(tap.shape.format, packetDuration: tap.shape.packetDuration, packetBytes: bytes)
    }

    /// Links that carry events have no packet size.
    private var bytes: Int {
      max(tap.shape.packetBytes, tap.shape.format == .event ? EventWriter.eventBytes : 1)
    }
  }

  /// Taps by number, until their sources have been created.
  private static let lines = Mutex<[Int: Line]>([:])

  /// Provides the tap for the source with this number; nil removes it.
  static func provide(_ line: Line?, as number: Int) { lines.withLock { $0[number] = line } }

  private let line: Line
  private var first: Int64?

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let line = Self.lines.withLock({ $0[setup.parameters.integer("tap")] }) else {
      throw NodeProblem("unknown tap")
    }
    self.line = line
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = line.tap.next() else {
      if line.tap.isOver { return .ended }
      ports.wake(at: ports.now + line.pollInterval)
      return .done
    }
    if line.isText { try emitLine(packet, &ports) } else { try emitCopy(packet, &ports) }
    return .again
  }

  private mutating func emitCopy(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    let start = first ?? packet.position
    first = start
    var copy = try ports.makePacket(bytes: Int(packet.byteCount), of: .none)
    Self.copy(packet.samples(of: UInt8.self), into: &copy)
    copy.copyMetadata(from: packet)
    // An encoder's first packets have negative positions, which mark samples to discard: keep those.
    if start > 0 { copy.position = packet.position - start }
    copy.generation = 0
    ports.emit(copy)
  }

  private func emitLine(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    let bytes = packet.samples(of: UInt8.self)
    let text = String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
    var json = JSONWriter()
    json.object { json in
      json.member("time", Double(packet.timestamp) / 1e9)
      json.member("text", text)
    }
    var copy = try ports.makePacket(bytes: json.bytes.count, of: .none)
    Self.copy(json.bytes.span, into: &copy)
    copy.timestamp = packet.timestamp
    ports.emit(copy)
  }

  private static func copy(_ bytes: Span<UInt8>, into packet: inout Packet) {
    var content = packet.mutableSamples(of: UInt8.self)
    for index in bytes.indices { content[index] = bytes[index] }
  }
}
