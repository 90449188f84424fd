internal import MillraceCore
internal import MillraceNet
internal import Synchronization

/// Receiving: from the service to the graph.
extension BailianDialog {
  /// Posts the oldest event, or emits the text of a reply. True when there was one.
  mutating func postEvent(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.events.peek() else { return false }
    let bytes = unsafe record.bytes
    if record.kind == BailianExchange.In.event {
      EventRecord.post(unsafe bytes.span, &ports)
    } else if isTextLinked {
      // The connection cuts long texts into pieces of this output's size.
      guard ports.hasRoomOrRequestsWake(Self.textOutput) else { return false }
      var packet = try ports.makePacket(Self.textOutput, bytes: bytes.count, of: .none)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = unsafe bytes[index] }
      ports.emit(packet, to: Self.textOutput)
    }
    exchange.events.drop(record)
    wakeIfRequested(exchange.events)
    return true
  }

  /// Delivers the oldest audio, or a part of it. True when there was some.
  mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.audio.peek() else { return false }
    guard isAcknowledged(), record.position >= staleBefore else {
      done(record)
      return true
    }
    if isAudioLinked && !ports.hasRoomOrRequestsWake(Self.audioOutput) { return false }
    if record.kind == BailianExchange.In.endOfUtterance {
      hasPart = false
      if isAudioLinked {
        var packet = try ports.makePacket(Self.audioOutput, bytes: 0, of: ports.currentReply)
        packet.flags.insert(.endOfUtterance)
        packet.position = position
        ports.emit(packet, to: Self.audioOutput)
      }
      exchange.delivered.add(1, ordering: .releasing)
      done(record)
      exchange.wakeSignal.signal()
      return true
    }
    guard isAudioLinked else {
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

  /// True when the connection has seen every cancellation of the graph: what it puts into the queue from then on belongs to later replies.
  private mutating func isAcknowledged() -> Bool {
    guard acknowledgedCancellations != graphCancellations else { return true }
    guard exchange.acknowledgedCancellations.load(ordering: .acquiring) == graphCancellations else {
      return false
    }
    acknowledgedCancellations = graphCancellations
    discard(before: exchange.acknowledgedBefore.load(ordering: .relaxed))
    return true
  }

  /// Emits an Opus packet.
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

  /// The first message of a reply in packets is the Opus header, RFC 7845 section 5.1.
  private static func isOpusHead(_ bytes: Span<UInt8>) -> Bool {
    let word: StaticString = "OpusHead"
    for index in 0..<8 where unsafe bytes[index] != word.utf8Start[index] { return false }
    return true
  }

  private mutating func emitPiece(_ record: ByteQueue.Record, _ ports: inout Ports) throws(NodeFault) {
    let bytes = unsafe record.bytes
    let fromPart = hasPart ? 1 : 0
    let wanted = min(bytes.count - delivered, pieceBytes - fromPart)
    let whole = (fromPart + wanted) / sampleBytes * sampleBytes
    if whole > 0 {
      var packet = try ports.makePacket(Self.audioOutput, bytes: whole, of: ports.currentReply)
      var target = packet.mutableSamples(of: UInt8.self)
      if hasPart { target[0] = part }
      for index in fromPart..<whole { target[index] = unsafe bytes[delivered + index - fromPart] }
      packet.duration = rate > 0 ? whole / sampleBytes : 0
      packet.position = position
      position += Int64(packet.duration)
      ports.emit(packet, to: Self.audioOutput)
      delivered += whole - fromPart
      hasPart = false
    }
    let left = bytes.count - delivered
    guard left < sampleBytes else { return }
    // Less than a sample is left of the message: it is kept for the next.
    if left == 1 {
      part = unsafe bytes[delivered]
      hasPart = true
    }
    done(record)
  }

  private mutating func done(_ record: ByteQueue.Record) {
    delivered = 0
    exchange.audio.drop(record)
    wakeIfRequested(exchange.audio)
  }

  private func wakeIfRequested(_ queue: ByteQueue) {
    if queue.takeRequest() { exchange.wakeSignal.signal() }
  }
}
