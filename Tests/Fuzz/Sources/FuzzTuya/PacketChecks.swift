/// Packets in frames that are made here: the parser behind the signature.
struct PacketChecks {
  private let wire: Wire

  init(_ settings: UInt8) { wire = Wire(settings) }

  /// A packet, and how it is framed.
  private struct Record {
    var bytes: [UInt8]
    /// Behind which bytes it is cut.
    var cuts: [Int]
    /// It is framed as a hello where it is one.
    var isPlain: Bool
    /// Where a byte of its last frame is changed, from the end; nil: nowhere.
    var damage: Int?

    /// The first byte of the packet says so.
    var isHello: Bool { bytes.first.map { $0 >> 1 == TuyaPacketType.clientHello.rawValue } ?? false }
  }

  /// Three bytes in front of each packet say how it is framed and how long it is. What is read must be what the packets say, unless a
  /// frame was changed.
  func take(_ bytes: ArraySlice<UInt8>) {
    var stream: [UInt8] = []
    var writer = wire.writer
    var expected = Reading()
    var isCertain = true
    for (index, record) in Self.records(bytes).enumerated() {
      let mayBeHello = record.isHello && index == 0 && wire.direction == .up
      do throws(TuyaWireProblem) {
        try writer.append(
          record.bytes, cutAt: record.cuts, isHello: mayBeHello && record.isPlain && record.cuts.count == 1,
          to: &stream)
      } catch { fatalError("a frame cannot be written: \(error)") }
      if let damage = record.damage { stream[max(0, stream.count - 1 - damage)] ^= 1 }
      // The reader takes its first packet for a hello that is not signed.
      if mayBeHello || record.damage != nil { isCertain = false }
      if expected.problem == nil { read(record.bytes, &expected) }
    }
    let reading = wire.read(stream, pieces: [1_000, 7, 1])
    if wire.read(stream, pieces: [max(1, stream.count)], soundApart: true) != reading {
      fatalError("the pieces change \(reading)")
    }
    if wire.isNarrow && reading.problem?.code == .oversized { isCertain = false }
    if isCertain && reading != expected { fatalError("\(reading) instead of \(expected)") }
    for packet in reading.packets { Self.check(packet, wire) }
  }

  private static func records(_ bytes: ArraySlice<UInt8>) -> [Record] {
    var rest = bytes
    var result: [Record] = []
    while let kind = rest.popFirst(), let high = rest.popFirst(), let low = rest.popFirst() {
      let piece = Array(rest.prefix(Int(high & 0x0F) << 8 | Int(low)))
      rest = rest.dropFirst(piece.count)
      let count = min(Int(kind & 3) + 1, max(1, piece.count))
      result.append(
        Record(
          bytes: piece, cuts: (1...count).map { piece.count * $0 / count }, isPlain: kind & 4 != 0,
          damage: kind & 0xC0 == 0xC0 ? Int(kind >> 3 & 7) * 9 : nil))
    }
    return result
  }

  private func read(_ bytes: [UInt8], _ reading: inout Reading) {
    do throws(TuyaWireProblem) { reading.packets.append(try wire.framing.form.packet(bytes.span)) } catch {
      reading.problem = error
    }
  }

  // MARK: Round trips

  /// What was read can be written, in one frame and in several, and reads as the same.
  static func check(_ packet: TuyaPacket, _ wire: Wire) {
    let packet = withoutLength(packet)
    let isHello = packet.type == .clientHello
    // Only a client says hello.
    let direction = isHello ? .up : wire.direction
    guard let copy = copy(packet, wire.widened(direction)) else {
      fatalError("it cannot be written: \(packet)")
    }
    if copy != packet { fatalError("the round trip changed \(packet) to \(copy)") }
    if !isHello, let copy = Self.copy(packet, wire.widened(direction, largestSent: 256)), copy != packet {
      fatalError("the round trip in fragments changed \(packet) to \(copy)")
    }
    checkSealed(packet, wire)
  }

  /// The picture in the dialect that encrypts it.
  private static func checkSealed(_ packet: TuyaPacket, _ wire: Wire) {
    guard wire.framing.dialect == .v21, packet.type == .image || packet.type == .video,
      case .media(var head, let data) = packet.content
    else { return }
    head.isKeyFrame = packet.type == .video
    var sealed = packet
    sealed.content = .media(head, data)
    guard let copy = copy(sealed, Wire(6).widened(wire.direction)) else {
      fatalError("it cannot be encrypted: \(packet)")
    }
    guard case .media(var found, let clear) = copy.content, !found.iv.isEmpty else {
      fatalError("no picture: \(copy)")
    }
    found.iv = []
    if found != head || clear != data { fatalError("the encryption changed \(sealed) to \(copy)") }
  }

  /// Nil: its attributes are too long for a frame.
  private static func copy(_ packet: TuyaPacket, _ wire: Wire) -> TuyaPacket? {
    var stream: [UInt8] = []
    var writer = wire.writer
    do throws(TuyaWireProblem) { try writer.append(packet, to: &stream) } catch {
      guard error.code == .oversized, wire.framing.largestSent < 65_000 else {
        fatalError("\(error) when it writes \(packet)")
      }
      return nil
    }
    let reading = wire.read(stream, pieces: [stream.count])
    guard reading.problem == nil, !reading.isInPacket, reading.packets.count == 1 else {
      fatalError("\(reading) after it wrote \(packet)")
    }
    return withoutLength(reading.packets[0])
  }

  /// The length of a payload belongs to how it is written.
  private static func withoutLength(_ packet: TuyaPacket) -> TuyaPacket {
    var packet = packet
    var attributes = TuyaAttributes()
    for entry in packet.attributes.entries where entry.id != .payloadLength { attributes.append(entry) }
    packet.attributes = attributes
    return packet
  }
}
