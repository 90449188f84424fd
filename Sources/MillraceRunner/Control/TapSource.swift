internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// What comes out of a tap on a link of another graph: the source of the small graphs that record links. In no catalogue but
/// that of `LinkRecording`.
///
/// - Out `out`: what the link carries, packet for packet, the first at position 0. Text becomes JSON lines with its time.
/// - Looks at the tap again and again, since a tap wakes nobody.
struct TapSource: Node {
  static let contract = NodeContract(
    "control.tap", "what a link carries",
    outputs: [PortContract("out", .any, text: "the link's packets")],
    parameters: [ParameterContract("tap", .integer(0...Int.max), required: true, text: "which")],
    lane: .bulk, drive: .itself
  ) { resolution in
    guard let line = lines.withLock({ $0[resolution.parameters.integer("tap")] }) else { return }
    resolution.outputs["out"] = line.shape
  }

  /// A tap that waits for its source.
  struct Line: Sendable {
    let tap: LinkTap
    /// How long to wait when nothing is there.
    let pause: Nanoseconds

    var isText: Bool { tap.shape.format == .text }

    var shape: OutputShape {
      // Escapes make six bytes of one at most; the rest is the frame around the text.
      isText
        ? OutputShape(.event, packetDuration: nil, packetBytes: 6 * tap.shape.packetBytes + 64)
        : OutputShape(tap.shape.format, packetDuration: tap.shape.packetDuration, packetBytes: bytes)
    }

    /// Events have no size of their own on a link.
    private var bytes: Int {
      max(tap.shape.packetBytes, tap.shape.format == .event ? EventWriter.eventBytes : 1)
    }
  }

  /// Taps by their number, until their sources are made.
  private static let lines = Mutex<[Int: Line]>([:])

  /// Puts a tap where the source with this number finds it.
  static func provide(_ line: Line?, as number: Int) { lines.withLock { $0[number] = line } }

  private let line: Line
  private var first: Int64?

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let line = Self.lines.withLock({ $0[setup.parameters.integer("tap")] }) else {
      throw NodeProblem("there is no such tap")
    }
    self.line = line
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = line.tap.next() else {
      if line.tap.isOver { return .ended }
      ports.wake(at: ports.now + line.pause)
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
    // An encoder's first packets have negative positions, which say what to throw away: those stay.
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
