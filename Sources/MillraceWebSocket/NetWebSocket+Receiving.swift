internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// Receiving: from the connection to the graph.
extension NetWebSocket {
  /// Delivers the oldest message, or a part of it. False when there is none or no room for it; the order is kept.
  mutating func deliver(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let record = exchange.incoming.peek() else { return false }
    let count = unsafe record.bytes.count
    if record.kind == SocketExchange.connectionStart {
      // The rest of an incomplete sample does not arrive over another connection.
      partCount = 0
      done(record)
      return true
    }
    if record.kind == SocketExchange.invalidText {
      postInvalidText(record, &ports)
      done(record)
      return true
    }
    if record.kind == SocketExchange.text {
      if isTextLinked && count <= largest && count > 0 {
        guard ports.hasRoomOrRequestsWake(1) else { return false }
        ports.emit(try packet(record, 0..<count, 1, &ports), to: 1)
      }
      done(record)
      return true
    }
    let start = isTagged ? 1 : 0
    let first = count > 0 ? unsafe record.bytes[0] : 0
    let isSound = !isTagged || first == Self.soundTag
    guard isSound, !(isWhole && count - start > pieceBytes) else {
      badFrames += 1
      let bad = badFrames
      ports.post(Event.badFrame.rawValue) {
        $0.field("bytes", count)
        $0.field("count", bad)
      }
      done(record)
      return true
    }
    guard isAudioLinked, record.position >= staleBefore || !areReplies else {
      done(record)
      return true
    }
    guard ports.hasRoomOrRequestsWake(0) else { return false }
    try emitSound(record, max(start, delivered), &ports)
    return true
  }

  private func postInvalidText(_ record: ByteQueue.Record, _ ports: inout Ports) {
    let text = unsafe record.bytes
    ports.post(Event.error.rawValue) { event in
      event.field("vendor", "websocket")
      event.field("category", "network")
      event.field("reaction", "continue")
      event.field("scope", "connection")
      event.field("text", utf8: unsafe text.span)
    }
  }

  private mutating func emitSound(
    _ record: ByteQueue.Record, _ start: Int, _ ports: inout Ports
  ) throws(NodeFault) {
    let count = unsafe record.bytes.count
    let wanted = min(count - start, pieceBytes - partCount)
    let whole = (partCount + wanted) / frameBytes * frameBytes
    if whole > 0 {
      var packet = try ports.makePacket(0, bytes: whole, of: areReplies ? ports.currentReply : .none)
      let fromPart = partCount
      var target = packet.mutableSamples(of: UInt8.self)
      for index in 0..<fromPart { target[index] = part[index] }
      for index in fromPart..<whole { target[index] = unsafe record.bytes[start + index - fromPart] }
      packet.duration = rate > 0 ? whole / frameBytes : 0
      packet.position = position
      position += Int64(packet.duration)
      ports.emit(packet, to: 0)
      delivered = start + whole - fromPart
      partCount = 0
    } else {
      delivered = start
    }
    // Less than a sample is left of the message: it is kept for the next.
    guard count - delivered < frameBytes || whole == 0 else { return }
    while delivered < count && partCount < 4 {
      part[partCount] = unsafe record.bytes[delivered]
      partCount += 1
      delivered += 1
    }
    done(record)
  }

  private func packet(
    _ record: ByteQueue.Record, _ range: Range<Int>, _ output: Int, _ ports: inout Ports
  ) throws(NodeFault) -> Packet {
    var packet = try ports.makePacket(output, bytes: range.count, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    for index in range { target[index - range.lowerBound] = unsafe record.bytes[index] }
    return packet
  }

  private mutating func done(_ record: ByteQueue.Record) {
    delivered = 0
    exchange.incoming.drop(record)
    if exchange.incoming.takeRequest() { exchange.wakeSignal.signal() }
  }
}
