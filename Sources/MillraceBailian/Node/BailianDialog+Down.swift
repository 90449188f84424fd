internal import MillraceCore
internal import MillraceNet
internal import Synchronization

/// From the service to the graph.
extension BailianDialog {
  /// Posts the oldest event, or hands an answer's words on. True when there was one.
  mutating func tellEvent(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.events.peek() else { return false }
    let bytes = unsafe record.bytes
    if record.kind == BailianExchange.In.event {
      EventRecord.post(unsafe bytes.span, &ports)
    } else if isRead {
      // The keeper cuts long answers into pieces of this output's size.
      guard ports.hasRoomOrAsks(Self.textOutput) else { return false }
      var packet = try ports.makePacket(Self.textOutput, bytes: bytes.count, of: .none)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = unsafe bytes[index] }
      ports.emit(packet, to: Self.textOutput)
    }
    exchange.events.drop(record)
    letKeeperGoOn(exchange.events)
    return true
  }

  /// Hands on the oldest sound, or a piece of it. True when there was some.
  mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.sounds.peek() else { return false }
    guard knowsVoids(), record.position >= voidBefore else {
      done(record)
      return true
    }
    if isHeard && !ports.hasRoomOrAsks(Self.audioOutput) { return false }
    if record.kind == BailianExchange.In.endOfUtterance {
      hasPart = false
      if isHeard {
        var packet = try ports.makePacket(Self.audioOutput, bytes: 0, of: ports.currentReply)
        packet.flags.insert(.endOfUtterance)
        packet.position = position
        ports.emit(packet, to: Self.audioOutput)
      }
      exchange.delivered.add(1, ordering: .releasing)
      done(record)
      exchange.ringer.ring()
      return true
    }
    guard isHeard else {
      done(record)
      return true
    }
    if isWhole {
      try emitWhole(record, &ports)
    } else {
      try emitPiece(record, &ports)
    }
    return true
  }

  /// True when the keeper has heard of every interruption: what it puts into the queue from then on is of later replies.
  private mutating func knowsVoids() -> Bool {
    guard knownVoids != foreignVoids else { return true }
    guard exchange.knownVoids.load(ordering: .acquiring) == foreignVoids else { return false }
    knownVoids = foreignVoids
    forget(before: exchange.knownBefore.load(ordering: .relaxed))
    return true
  }

  /// A packet of Opus, as it is.
  private mutating func emitWhole(_ record: ByteQueue.Record, _ ports: inout Ports) throws(NodeFault) {
    let bytes = unsafe record.bytes
    let isHead = unsafe bytes.count >= 8 && Self.isOpusHead(bytes.span)
    if !isHead && bytes.count <= pieceBytes && bytes.count > 0 {
      var packet = try ports.makePacket(Self.audioOutput, bytes: bytes.count, of: ports.currentReply)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = unsafe bytes[index] }
      ports.emit(packet, to: Self.audioOutput)
    }
    done(record)
  }

  /// The first frame of a reply of packets is their header, RFC 7845 section 5.1.
  private static func isOpusHead(_ bytes: Span<UInt8>) -> Bool {
    let word: StaticString = "OpusHead"
    for index in 0..<8 where unsafe bytes[index] != word.utf8Start[index] { return false }
    return true
  }

  private mutating func emitPiece(_ record: ByteQueue.Record, _ ports: inout Ports) throws(NodeFault) {
    let bytes = unsafe record.bytes
    let fromPart = hasPart ? 1 : 0
    let wanted = min(bytes.count - handedOn, pieceBytes - fromPart)
    let whole = (fromPart + wanted) / sampleBytes * sampleBytes
    if whole > 0 {
      var packet = try ports.makePacket(Self.audioOutput, bytes: whole, of: ports.currentReply)
      var target = packet.mutableSamples(of: UInt8.self)
      if hasPart { target[0] = part }
      for index in fromPart..<whole { target[index] = unsafe bytes[handedOn + index - fromPart] }
      packet.duration = rate > 0 ? whole / sampleBytes : 0
      packet.position = position
      position += Int64(packet.duration)
      ports.emit(packet, to: Self.audioOutput)
      handedOn += whole - fromPart
      hasPart = false
    }
    let left = bytes.count - handedOn
    guard left < sampleBytes else { return }
    // Less than one sample is left of the frame: it goes before the next.
    if left == 1 {
      part = unsafe bytes[handedOn]
      hasPart = true
    }
    done(record)
  }

  private mutating func done(_ record: ByteQueue.Record) {
    handedOn = 0
    exchange.sounds.drop(record)
    letKeeperGoOn(exchange.sounds)
  }

  private func letKeeperGoOn(_ queue: ByteQueue) {
    if queue.takeRequest() { exchange.ringer.ring() }
  }
}
